/** Networks in configuration: one address, or one with a prefix length. */
import { isIP } from 'node:net'

export interface Network {
  readonly address: string
  readonly prefix: number
  readonly family: 'ipv4' | 'ipv6'
}

/** `10.0.0.0/8`, `::1`; undefined for anything that is neither an address nor a network. */
export function parseNetwork(text: string): Network | undefined {
  const [address = '', bits] = text.split('/')
  const family = isIP(address)
  const bitsMax = family === 6 ? 128 : 32
  const prefix = bits === undefined ? bitsMax : Number(bits)
  const isValid = family !== 0 && bits !== '' && Number.isInteger(prefix) && prefix >= 0 && prefix <= bitsMax
  return isValid ? { address, prefix, family: family === 6 ? 'ipv6' : 'ipv4' } : undefined
}

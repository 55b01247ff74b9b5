/** Networks in configuration: one address, or one with a prefix length. */
import { BlockList } from 'node:net'

export interface Network {
  readonly address: string
  readonly prefix: number
  readonly family: 'ipv4' | 'ipv6'
}

/** `10.0.0.0/8`, `::1`; undefined for anything that is neither an address nor a network. */
export function parseNetwork(text: string): Network | undefined {
  const [address = '', bits] = text.split('/')
  const family = address.includes(':') ? 'ipv6' : 'ipv4'
  const bitsMax = family === 'ipv6' ? 128 : 32
  const prefix = bits === undefined ? bitsMax : Number(bits)
  if (bits === '' || !Number.isInteger(prefix) || prefix < 0 || prefix > bitsMax) return undefined
  try {
    // Not `isIP`: compiling its expression costs more than all other checks of the configuration together.
    new BlockList().addSubnet(address, prefix, family)
    return { address, prefix, family }
  } catch {
    return undefined
  }
}

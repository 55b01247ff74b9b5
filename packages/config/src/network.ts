/** Parses networks of the configuration: an address, optionally with a prefix length. */
import { BlockList } from 'node:net'

export interface Network {
  readonly address: string
  readonly prefix: number
  readonly family: 'ipv4' | 'ipv6'
}

/** Parses a network such as `10.0.0.0/8` or `::1`; undefined for any other text. */
export function parseNetwork(text: string): Network | undefined {
  const [address = '', bits] = text.split('/')
  const family = address.includes(':') ? 'ipv6' : 'ipv4'
  const bitsMax = family === 'ipv6' ? 128 : 32
  const prefix = bits === undefined ? bitsMax : Number(bits)
  if (bits === '' || !Number.isInteger(prefix) || prefix < 0 || prefix > bitsMax) return undefined
  try {
    // `isIP` is not used here because its regular expression costs more than all other checks of the configuration.
    new BlockList().addSubnet(address, prefix, family)
    return { address, prefix, family }
  } catch {
    return undefined
  }
}

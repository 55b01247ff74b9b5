/** Parses networks of the configuration: an address, optionally with a prefix length. */

export interface Network {
  readonly address: string
  readonly prefix: number
  readonly family: 'ipv4' | 'ipv6'
}

/** Parses a network such as `10.0.0.0/8` or `::1`; undefined for any other text. */
export function parseNetwork(text: string): Network | undefined {
  const [address = '', bits, more] = text.split('/')
  const family = address.includes(':') ? 'ipv6' : 'ipv4'
  const bitsMax = family === 'ipv6' ? 128 : 32
  const prefix = bits === undefined ? bitsMax : Number(bits)
  // Only digits: `Number` makes 0, which is every address, of a blank.
  if ((bits !== undefined && !/^\d{1,3}$/.test(bits)) || prefix > bitsMax || more !== undefined) return undefined
  const isValid = family === 'ipv6' ? isIpv6(address.split('%', 1)[0] ?? '') : isIpv4(address)
  return isValid ? { address, prefix, family } : undefined
}

/**
 * Whether a text is an IPv4 or IPv6 address without a zone. `node:net` is not asked, because every command reads the configuration and
 * loading that module takes 8 ms of a processor.
 */
export const isAddress = (text: string): boolean => (text.includes(':') ? isIpv6(text) : isIpv4(text))

const isIpv4 = (text: string): boolean => {
  const parts = text.split('.')
  return parts.length === 4 && parts.every((part) => /^(?:0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255)
}

const isIpv6 = (text: string): boolean => /^[0-9a-f:.]{2,45}$/i.test(text) && URL.canParse(`http://[${text}]`)

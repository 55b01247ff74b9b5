/** Mail addresses: parses them strictly from headers, and matches them with the allowlist. */

/** Returns one form for all spellings of an address. */
export const normaliseAddress = (address: string): string => address.trim().toLowerCase()

/** Returns whether the entry `example.com` or `@example.com` covers an address: it must have exactly this domain. */
export function coversAddress(entry: string, address: string): boolean {
  const domain = normaliseAddress(entry).replace(/^@/, '')
  return domain !== '' && !domain.includes('@') && address.endsWith(`@${domain}`)
}

/** An address that every mail program reads in the same way; quoted local parts are excluded, and the Kelvin sign, which becomes a `k`. */
const ADDRESS = /^[^\s\p{Cc}\u212a@<>(),;:\\"[\]]{1,64}@[^\s\p{Cc}\u212a@<>(),;:\\"[\]]{1,255}$/u
/** A name before the angle brackets may contain `@` or a separator of addresses, but not both. */
const IN_ANGLES = /^(?:[^<>@]*|[^<>,;:]*)<([^<>]*)>$/

export const isAddress = (text: string): boolean => ADDRESS.test(text)

/** Returns whether an allowlist entry is a domain, such as `example.com` or `@example.com`. */
export const isDomain = (text: string): boolean => isAddress(`x@${text.replace(/^@/, '')}`)

/** Returns the address in lower case if `values` is one header with one unambiguous address; undefined otherwise. */
export function onlyAddress(values: readonly string[]): string | undefined {
  const [value, another] = values
  if (value === undefined || another !== undefined) return undefined
  const plain = withoutComments(value)?.trim() ?? ''
  const address = (IN_ANGLES.exec(plain)?.[1] ?? plain).trim()
  return isAddress(address) ? normaliseAddress(address) : undefined
}

/** Removes comments and quoted names from a header; returns undefined if one of them does not end. */
function withoutComments(value: string): string | undefined {
  let plain = ''
  let depth = 0
  let quoted = false
  for (let at = 0; at < value.length; at++) {
    const character = value[at]
    if (character === '\\' && (quoted || depth > 0)) at++
    else if (quoted) quoted = character !== '"'
    else if (character === '"' && depth === 0) quoted = true
    else if (character === '(') depth++
    else if (character === ')' && depth > 0) depth--
    else if (depth === 0) plain += character
  }
  return quoted || depth > 0 ? undefined : plain
}

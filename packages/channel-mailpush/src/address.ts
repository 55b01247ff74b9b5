/** Mail addresses: read from headers strictly, compared in small letters, covered by domains of the allowlist. */

/** The form two spellings of one address share. */
export const normaliseAddress = (address: string): string => address.trim().toLowerCase()

/** Whether `example.com` or `@example.com` covers an address: one of exactly that domain. */
export function coversAddress(entry: string, address: string): boolean {
  const domain = normaliseAddress(entry).replace(/^@/, '')
  return domain !== '' && !domain.includes('@') && address.endsWith(`@${domain}`)
}

/** One mailbox and nothing that could mean something else to another reader; quoted local parts are not taken. */
const ADDRESS = /^[^\s\p{Cc}@<>(),;:\\"[\]]{1,64}@[^\s\p{Cc}@<>(),;:\\"[\]]{1,255}$/u
/** A name may hold an address, or what separates addresses, but not both. */
const IN_ANGLES = /^(?:[^<>@]*|[^<>,;:]*)<([^<>]*)>$/

export const isAddress = (text: string): boolean => ADDRESS.test(text)

/** True for `example.com` and `@example.com`, as an allowlist has them. */
export const isDomain = (text: string): boolean => isAddress(`x@${text.replace(/^@/, '')}`)

/** The one address in the one header of its kind, in small letters; undefined if there are none, several, or it is unclear. */
export function onlyAddress(values: readonly string[]): string | undefined {
  const [value, another] = values
  if (value === undefined || another !== undefined) return undefined
  const plain = withoutComments(value)?.trim() ?? ''
  const address = (IN_ANGLES.exec(plain)?.[1] ?? plain).trim()
  return isAddress(address) ? normaliseAddress(address) : undefined
}

/** A header without its comments and quoted names, which may hold anything; undefined if one of them has no end. */
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

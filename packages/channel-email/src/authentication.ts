/** Decides whether the mail server has verified the domain of a sender (RFC 8601, RFC 7489). */

interface Result {
  readonly method: string
  readonly result: string
  /** Such as `header.d` or `smtp.mailfrom`, in lower case. */
  readonly properties: ReadonlyMap<string, string>
}

/** Results of DMARC for a domain without a policy. */
const NO_POLICY = new Set(['none', 'bestguesspass'])
const RESULT = /^([a-z][a-z\d-]{0,40})(?:\/\d{1,3})?\s{0,10}=\s{0,10}([a-z]{1,20})/i
const PROPERTY = /(?:^|\s)([a-z]{1,20}\.[a-z\d_-]{1,40})\s{0,10}=\s{0,10}([^\s=]{1,320})/gi

/**
 * Returns whether the topmost of these `Authentication-Results` headers is by one of `authservIds` and says that the domain of
 * `address` passed DMARC, or, if the domain has no DMARC policy, that an aligned DKIM or SPF check passed. A sender can forge all
 * headers but the topmost. An empty id accepts a header without a name.
 */
export function isAuthenticated(headers: readonly string[], authservIds: readonly string[], address: string): boolean {
  const results = trustedResults(headers[0], authservIds)
  const domain = address.slice(address.lastIndexOf('@') + 1)
  const dmarc = results.filter(({ method }) => method === 'dmarc')
  const [first] = dmarc
  if (first && !NO_POLICY.has(first.result)) {
    return dmarc.every(({ result, properties }) => result === 'pass' && properties.get('header.from') === domain)
  }
  return (
    dmarc.every(({ result }) => NO_POLICY.has(result)) && results.some((result) => result.result === 'pass' && isAligned(result, domain))
  )
}

/** Whether a header is by one of these servers. */
export const isTrustedServer = (header: string, authservIds: readonly string[]): boolean => authservIds.includes(serverOf(header))

/** Returns why a mail counts as unverified, as a clause for operators. */
export function whyUnverified(headers: readonly string[], authservIds: readonly string[]): string {
  const [top] = headers
  if (top === undefined) return 'it has no Authentication-Results header'
  if (!isTrustedServer(top, authservIds))
    return `its topmost Authentication-Results header is by ${JSON.stringify(serverOf(top).slice(0, 100))}, which is not authserv_id`
  return 'its domain did not pass DMARC'
}

/** Only the domain itself and the domains above it control what is under a domain. */
function isAligned({ method, properties }: Result, domain: string): boolean {
  const signed =
    method === 'dkim'
      ? (properties.get('header.d') ?? properties.get('header.i'))
      : method === 'spf'
        ? properties.get('smtp.mailfrom')
        : undefined
  if (signed === undefined) return false
  const by = signed.slice(signed.lastIndexOf('@') + 1)
  return by.includes('.') && (domain === by || domain.endsWith(`.${by}`))
}

/** The name of the server in a header, in lower case; empty if the header begins with a result. */
function serverOf(header: string): string {
  const [first = ''] = partsOf(header)
  return RESULT.test(first) ? '' : (first.split(/\s/)[0]?.toLowerCase() ?? '')
}

function trustedResults(header: string | undefined, authservIds: readonly string[]): readonly Result[] {
  if (header === undefined || !isTrustedServer(header, authservIds)) return []
  return partsOf(header).flatMap((part) => {
    const [, method = '', result = ''] = RESULT.exec(part) ?? []
    const properties = new Map<string, string>()
    for (const [, name = '', value = ''] of part.toLowerCase().matchAll(PROPERTY)) {
      // One of two values may come from the sender, so neither counts.
      properties.set(name, (properties.get(name) ?? value) === value ? value : '')
    }
    return method === '' ? [] : [{ method: method.toLowerCase(), result: result.toLowerCase(), properties }]
  })
}

/** Splits a header at its semicolons, without comments; the contents of quoted strings, which a sender may choose, become `?`. */
function partsOf(header: string): readonly string[] {
  const parts = ['']
  let depth = 0
  let isQuoted = false
  for (let at = 0; at < header.length; at++) {
    const character = header[at] ?? ''
    if (character === '\\' && (isQuoted || depth > 0)) at++
    else if (isQuoted) isQuoted = character !== '"'
    else if (character === '"' && depth === 0) {
      isQuoted = true
      parts[parts.length - 1] += '?'
    } else if (character === '(') depth++
    else if (character === ')' && depth > 0) depth--
    else if (depth === 0 && character === ';') parts.push('')
    else if (depth === 0) parts[parts.length - 1] += character
  }
  // A comment or a quoted string that does not end hides an unknown part of the header.
  return isQuoted || depth > 0 ? [] : parts.map((part) => part.trim())
}

/** Headers every answer carries, and the few kinds of answer there are. */

/** An answer of this API is never a page, never framed, never guessed at and never kept. */
export const SECURITY_HEADERS = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
} as const

/** For JSON. Frozen and shared: copying headers for each answer is what makes answers slow. */
export const JSON_HEADERS = Object.freeze({ 'content-type': 'application/json', ...SECURITY_HEADERS })

export const jsonResponse = (value: unknown, status = 200): Response =>
  new Response(JSON.stringify(value), { status, headers: JSON_HEADERS })

/** Adds the headers to an answer somebody else made, where it does not say otherwise itself. */
export function withSecurityHeaders(response: Response): Response {
  const missing = Object.entries(SECURITY_HEADERS).filter(([name]) => !response.headers.has(name))
  try {
    for (const [name, value] of missing) response.headers.set(name, value)
    return response
  } catch {
    // The headers of `Response.redirect()` and of a fetched answer are immutable.
    const copy = new Response(response.body, response)
    for (const [name, value] of missing) copy.headers.set(name, value)
    return copy
  }
}

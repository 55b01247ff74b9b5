/** The headers that every answer carries, and JSON answers that carry them. */

/** An answer of this API is never rendered as a page, framed, sniffed or cached. */
export const SECURITY_HEADERS = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
} as const

/** The headers of a JSON answer. Frozen and shared, because copying headers is the most expensive part of a small answer. */
export const JSON_HEADERS = Object.freeze({ 'content-type': 'application/json', ...SECURITY_HEADERS })

/** The usual answer to a webhook of a chat platform: its messages are durable, also if there were none or all were repeats. */
export const RECEIVED = JSON.stringify({ status: 'ok' })

export const jsonResponse = (value: unknown, status = 200): Response => jsonText(JSON.stringify(value), status)

export const jsonText = (json: string, status = 200): Response => new Response(json, { status, headers: JSON_HEADERS })

/** Adds the headers to a `Response` that a feature made. A header that the response sets itself stays. */
export function withSecurityHeaders(response: Response): Response {
  const missing = Object.entries(SECURITY_HEADERS).filter(([name]) => !response.headers.has(name))
  try {
    for (const [name, value] of missing) response.headers.set(name, value)
    return response
  } catch {
    // The headers of `Response.redirect()` and of a fetched response are immutable.
    const copy = new Response(response.body, response)
    for (const [name, value] of missing) copy.headers.set(name, value)
    return copy
  }
}

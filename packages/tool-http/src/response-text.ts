/** Formats an HTTP response as text for the model. */

/** The response headers that the model sees. Cookies are not among them. */
const SHOWN_HEADERS = [
  'content-type',
  'content-encoding',
  'content-length',
  'last-modified',
  'etag',
  'location',
  'link',
  'retry-after',
  'allow',
]
/** How far a body is searched for a NUL byte, which text does not have. */
const SNIFFED_BYTES = 8192

/** Formats the status line, some headers and the body, or the size of a body that is not text. */
export function responseText(response: Response, body: Uint8Array, requestUrl: string): string {
  const lines = [`HTTP ${response.status} ${response.statusText}`.trimEnd()]
  if (response.url !== '' && response.url !== URL.parse(requestUrl)?.href) lines.push(`[redirected to ${response.url}]`)
  for (const name of SHOWN_HEADERS) {
    const value = response.headers.get(name)
    if (value !== null) lines.push(`${name}: ${value}`)
  }
  return `${lines.join('\n')}\n\n${bodyText(response.headers, body)}`
}

/** Returns the body as text; undefined when it is empty or binary. */
export const bodyIfText = (headers: Headers, body: Uint8Array): string | undefined =>
  body.length === 0 || isBinary(headers, body) ? undefined : decode(body, charsetOf(headers))

function bodyText(headers: Headers, body: Uint8Array): string {
  if (body.length === 0) return '[no body]'
  return bodyIfText(headers, body) ?? `[${body.length} bytes that are not text]`
}

function isBinary(headers: Headers, body: Uint8Array): boolean {
  const isEncoded = !['', 'identity'].includes(headers.get('content-encoding') ?? '')
  const isBinaryType = /^(?:image\/(?!svg)|audio\/|video\/|font\/)/i.test(typeOf(headers))
  return isEncoded || isBinaryType || body.subarray(0, SNIFFED_BYTES).includes(0)
}

const typeOf = (headers: Headers): string => headers.get('content-type') ?? ''
const charsetOf = (headers: Headers): string | undefined => /charset="?([^\s";]+)/i.exec(typeOf(headers))?.[1]

function decode(body: Uint8Array, charset = 'utf-8'): string {
  try {
    return new TextDecoder(charset).decode(body)
  } catch {
    // The charset is unknown to the decoder.
    return new TextDecoder().decode(body)
  }
}

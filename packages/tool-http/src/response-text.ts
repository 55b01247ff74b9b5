/** An HTTP answer as text the model can read. */

/** The headers worth a model's while; cookies stay out. */
const SHOWN = ['content-type', 'content-encoding', 'content-length', 'last-modified', 'etag', 'location', 'link', 'retry-after', 'allow']
/** Where a text would have shown a NUL byte if it had any. */
const SNIFFED_BYTES = 8192

/** Status line, some headers, and the body; of a body that is no text only its size. `asked` is the URL of the request. */
export function responseText(response: Response, body: Uint8Array, asked: string): string {
  const lines = [`HTTP ${response.status} ${response.statusText}`.trimEnd()]
  if (response.url !== '' && response.url !== URL.parse(asked)?.href) lines.push(`[redirected to ${response.url}]`)
  for (const name of SHOWN) {
    const value = response.headers.get(name)
    if (value !== null) lines.push(`${name}: ${value}`)
  }
  return `${lines.join('\n')}\n\n${bodyText(response.headers, body)}`
}

/** The body where it is text; undefined where there is none that could be read as one. */
export const bodyIfText = (headers: Headers, body: Uint8Array): string | undefined =>
  body.length === 0 || isNoText(headers, body) ? undefined : decode(body, charsetOf(headers))

function bodyText(headers: Headers, body: Uint8Array): string {
  if (body.length === 0) return '[no body]'
  return bodyIfText(headers, body) ?? `[${body.length} bytes that are not text]`
}

function isNoText(headers: Headers, body: Uint8Array): boolean {
  const isEncoded = !['', 'identity'].includes(headers.get('content-encoding') ?? '')
  const isBinary = /^(?:image\/(?!svg)|audio\/|video\/|font\/)/i.test(typeOf(headers)) || body.subarray(0, SNIFFED_BYTES).includes(0)
  return isEncoded || isBinary
}

const typeOf = (headers: Headers): string => headers.get('content-type') ?? ''
const charsetOf = (headers: Headers): string | undefined => /charset="?([^\s";]+)/i.exec(typeOf(headers))?.[1]

function decode(body: Uint8Array, charset = 'utf-8'): string {
  try {
    return new TextDecoder(charset).decode(body)
  } catch {
    // a charset nobody knows
    return new TextDecoder().decode(body)
  }
}

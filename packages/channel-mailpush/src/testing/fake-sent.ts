/** Parses a mail sent through the fake mail API and refuses one that a mail server would refuse. */

/** A mail that was sent through the API. */
export interface SentMail {
  readonly threadId: string | undefined
  /** Unfolded values by lower-case name. */
  readonly headers: ReadonlyMap<string, string>
  /** The decoded text with `\n` line ends. */
  readonly text: string
  readonly files: readonly { readonly name: string; readonly bytes: Uint8Array }[]
}

const LINE_BYTES_MAX = 998

/** Returns the parsed mail, or a text with the reason for refusing it. */
export function readSentMail(raw: string, threadId: string | undefined): SentMail | string {
  if (!/^[\w-]+={0,2}$/.test(raw)) return 'Invalid value for ByteString'
  const mail = Buffer.from(raw, 'base64url').toString()
  if (/(?<!\r)\n|\r(?!\n)/.test(mail)) return 'Bare line ends'
  if (mail.split('\r\n').some((line) => Buffer.byteLength(line) > LINE_BYTES_MAX)) return 'A line is too long'
  const end = mail.indexOf('\r\n\r\n')
  if (end < 0) return 'No body'
  const headers = new Map<string, string>()
  for (const line of mail
    .slice(0, end)
    .replace(/\r\n[ \t]/g, ' ')
    .split('\r\n')) {
    const [, name = '', value = ''] = /^([!-9;-~]+): ?(.*)$/.exec(line) ?? []
    if (!name || headers.has(name.toLowerCase())) return `Invalid header: ${line}`
    headers.set(name.toLowerCase(), value)
  }
  if (!/^[^\s<>,@]+@[^\s<>,@]+$/.test(headers.get('to') ?? '')) return 'Invalid To header'
  if (!/^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}$/.test(headers.get('date') ?? '')) return 'Invalid Date header'
  if (!/^<[^\s<>@]+@[^\s<>@]+>$/.test(headers.get('message-id') ?? '')) return 'Invalid Message-ID header'
  const [, boundary] = /^multipart\/mixed; boundary="([^"]+)"$/.exec(headers.get('content-type') ?? '') ?? []
  const bodies = boundary === undefined ? [mail] : mail.slice(end).split(`--${boundary}`).slice(1, -1)
  const parts = bodies.map(readPart)
  const [first] = parts
  if (!first || parts.includes(undefined)) return 'This fake decodes only base64'
  const files = parts.slice(1).map((part) => ({ name: part?.name ?? '', bytes: part?.bytes ?? new Uint8Array() }))
  return { threadId, headers, text: first.bytes.toString().replaceAll('\r\n', '\n'), files }
}

/** Returns undefined for a part that is not base64. */
function readPart(part: string): { readonly name: string; readonly bytes: Buffer } | undefined {
  const end = part.indexOf('\r\n\r\n', 2)
  const head = part.slice(0, end)
  if (!/^content-transfer-encoding: base64$/im.test(head)) return undefined
  // RFC 2045, section 5.1: a value is a token or a quoted string.
  const [, quoted, token = ''] = /filename=(?:"([^"]*)"|([^\s;"]+))/.exec(head) ?? []
  return { name: quoted ?? token, bytes: Buffer.from(part.slice(end), 'base64') }
}

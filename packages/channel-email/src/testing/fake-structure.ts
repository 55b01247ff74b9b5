/** Describes a raw mail as an IMAP server does: its header, its parts, and BODYSTRUCTURE (RFC 3501, section 7.4.2). */

export interface FakePart {
  readonly header: Buffer
  readonly body: Buffer
  readonly parts: readonly FakePart[]
}

export function parseRaw(raw: Buffer): FakePart {
  const end = raw.indexOf('\r\n\r\n')
  const header = end < 0 ? raw : raw.subarray(0, end + 4)
  const body = end < 0 ? Buffer.alloc(0) : raw.subarray(end + 4)
  const boundary = parametersIn(fieldOf(header, 'content-type') ?? '').find(([name]) => name === 'boundary')?.[1]
  const isMultipart = /^multipart\//i.test(fieldOf(header, 'content-type') ?? '')
  return { header, body, parts: isMultipart && boundary !== undefined ? partsOf(body, boundary).map(parseRaw) : [] }
}

function partsOf(body: Buffer, boundary: string): Buffer[] {
  const text = `\r\n${body.toString('latin1')}`
  const [, ...pieces] = text.split(`\r\n--${boundary}`)
  const end = pieces.findIndex((piece) => piece.startsWith('--'))
  return pieces.slice(0, end < 0 ? undefined : end).map((piece) => Buffer.from(piece.replace(/^[ \t]*\r\n/, ''), 'latin1'))
}

/** The unfolded value of the first field of this name. */
export function fieldOf(header: Buffer, name: string): string | undefined {
  const lines = header
    .toString('latin1')
    .replace(/\r\n(?=[ \t])/g, '')
    .split('\r\n')
  const found = lines.find((line) => line.toLowerCase().startsWith(`${name}:`))
  return found?.slice(name.length + 1).trim()
}

function parametersIn(value: string): readonly (readonly [string, string])[] {
  return [...value.matchAll(/;\s*([\w*-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;]+))/g)].map(
    ([, name = '', quoted, plain]) => [name.toLowerCase(), (quoted ?? plain ?? '').replace(/\\(.)/g, '$1')] as const,
  )
}

const quoted = (text: string): string => `"${text.replace(/["\\]/g, '\\$&')}"`

const list = (parameters: readonly (readonly [string, string])[]): string =>
  parameters.length === 0 ? 'NIL' : `(${parameters.flat().map(quoted).join(' ')})`

export function structureOf({ header, body, parts }: FakePart): string {
  const content = fieldOf(header, 'content-type') ?? 'text/plain; charset=us-ascii'
  const [family = '', subtype = ''] = (content.split(';')[0] ?? '').trim().split('/')
  const parameters = parametersIn(`;${content.split(';').slice(1).join(';')}`)
  const disposition = fieldOf(header, 'content-disposition')
  const shown = disposition ? `(${quoted((disposition.split(';')[0] ?? '').trim())} ${list(parametersIn(disposition))})` : 'NIL'
  if (parts.length > 0) return `(${parts.map(structureOf).join('')} ${quoted(subtype)} ${list(parameters)} ${shown} NIL NIL)`
  const encoding = fieldOf(header, 'content-transfer-encoding') ?? '7bit'
  const lines = body.toString('latin1').split('\r\n').length
  const basic = [quoted(family), quoted(subtype), list(parameters), 'NIL', 'NIL', quoted(encoding), body.length]
  return `(${[...basic, ...(family.toLowerCase() === 'text' ? [lines] : []), 'NIL', shown, 'NIL', 'NIL'].join(' ')})`
}

/** Returns the bytes of a section, such as `1.2`, `HEADER` or `HEADER.FIELDS (FROM)`; undefined without such a part. */
export function sectionOf(mail: FakePart, raw: Buffer, section: string): Buffer | undefined {
  if (section === '') return raw
  if (section === 'HEADER') return mail.header
  if (section === 'TEXT') return mail.body
  const [, fields] = /^HEADER\.FIELDS \(([^)]*)\)$/.exec(section) ?? []
  if (fields !== undefined) {
    const wanted = fields.toLowerCase().split(' ')
    const kept = mail.header
      .toString('latin1')
      .split(/\r\n(?![ \t])/)
      .filter((line) => wanted.includes((line.split(':')[0] ?? '').toLowerCase()))
    return Buffer.from(`${kept.map((line) => `${line}\r\n`).join('')}\r\n`, 'latin1')
  }
  if (section === '1' && mail.parts.length === 0) return mail.body
  let part: FakePart | undefined = mail
  for (const number of section.split('.')) part = part?.parts[Number(number) - 1]
  return part?.body
}

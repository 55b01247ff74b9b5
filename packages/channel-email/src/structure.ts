/** The parts of a mail, from the description that the server gives of it (BODYSTRUCTURE of RFC 3501), and their decoding. */
import { decodeText, decodeWords, keepsMarks } from '@sluice/mail-common/reading'
import { type ImapValue, listOf, textOf } from './imap-values.ts'

export interface Part {
  /** The number by which the part is fetched, such as `1.2`. */
  readonly number: string
  /** Such as `text/plain`, in lower case. */
  readonly type: string
  readonly charset: string
  /** Whether the sender's program made the marks of quotes in its text; see `keepsMarks`. */
  readonly keepsMarks: boolean
  /** The transfer encoding, in lower case. */
  readonly encoding: string
  /** The size in bytes, as transferred. */
  readonly size: number
  readonly isAttachment: boolean
  readonly name: string
  readonly parts: readonly Part[]
}

/** The structure of a mail of which only the header is known. */
export const NO_PARTS: Part = {
  number: '',
  type: 'multipart/mixed',
  charset: '',
  keepsMarks: false,
  encoding: '',
  size: 0,
  isAttachment: false,
  name: '',
  parts: [],
}

/** Parts nested deeper are ignored, so that a sender cannot overflow the stack. */
const DEPTH_MAX = 30
const SECTIONS_MAX = 100
/** Where a body has its extensions, which begin with an MD5 and the disposition. */
const EXTENSIONS = 7
const TEXT_TYPES = new Set(['text/plain', 'text/html'])

export const parseStructure = (value: ImapValue | undefined): Part => partOf(listOf(value), '', 0)

function partOf(list: readonly ImapValue[], path: string, depth: number): Part {
  if (Array.isArray(list[0])) return multipart(list, path, depth)
  const [family, subtype, parameters, , , encoding, size] = list
  const type = `${textOf(family)}/${textOf(subtype)}`.toLowerCase()
  const extensions = EXTENSIONS + (type.startsWith('text/') ? 1 : type === 'message/rfc822' || type === 'message/global' ? 3 : 0)
  const [disposition, ofDisposition] = listOf(list[extensions + 1])
  const given = parametersOf(parameters)
  const name = parametersOf(ofDisposition).get('filename') ?? given.get('name') ?? ''
  return {
    number: path || '1',
    type,
    charset: given.get('charset') ?? 'utf-8',
    keepsMarks: type === 'text/plain' && keepsMarks({ format: given.get('format'), delsp: given.get('delsp') }),
    encoding: textOf(encoding).toLowerCase(),
    size: Number(textOf(size)) || 0,
    isAttachment: textOf(disposition).toLowerCase() === 'attachment' || name !== '' || !TEXT_TYPES.has(type),
    name,
    parts: [],
  }
}

function multipart(list: readonly ImapValue[], path: string, depth: number): Part {
  const count = list.findIndex((value) => !Array.isArray(value))
  const inner = depth < DEPTH_MAX ? list.slice(0, count < 0 ? undefined : count).slice(0, SECTIONS_MAX) : []
  const parts = inner.map((value, index) => partOf(listOf(value), path === '' ? String(index + 1) : `${path}.${index + 1}`, depth + 1))
  const subtype = textOf(count < 0 ? undefined : list[count]).toLowerCase()
  return { ...NO_PARTS, number: path, type: `multipart/${subtype}`, parts }
}

/** Parameters by name. Long and encoded values come in pieces: `name*0*=UTF-8''a%20`, `name*1=b` (RFC 2231). */
function parametersOf(value: ImapValue | undefined): ReadonlyMap<string, string> {
  const list = listOf(value)
  const plain = new Map<string, string>()
  const pieces = new Map<string, { index: number; isEncoded: boolean; text: string }[]>()
  for (let at = 0; at + 1 < list.length; at += 2) {
    const text = textOf(list[at + 1])
    const [, name = '', index, star] = /^([^*]{1,60})(?:\*(\d{1,3}))?(\*)?$/.exec(textOf(list[at]).toLowerCase()) ?? []
    if (name === '') continue
    if (index === undefined && star === undefined) plain.set(name, decodeWords(utf8(text)))
    else pieces.set(name, [...(pieces.get(name) ?? []), { index: Number(index ?? 0), isEncoded: star !== undefined, text }])
  }
  for (const [name, found] of pieces) plain.set(name, joined(found))
  return plain
}

function joined(pieces: readonly { readonly index: number; readonly isEncoded: boolean; readonly text: string }[]): string {
  const ordered = pieces.toSorted((a, b) => a.index - b.index)
  const [, charset, rest] = /^([\w.:-]{0,40})'[^']{0,40}'(.*)$/s.exec(ordered[0]?.isEncoded ? ordered[0].text : '') ?? []
  const bytes = ordered.map(({ isEncoded, text }, index) => {
    const own = index === 0 && rest !== undefined ? rest : text
    return isEncoded ? own.replace(/%([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))) : own
  })
  return decodeText(Buffer.from(bytes.join(''), 'latin1'), charset || 'utf-8')
}

/** Names in a structure may be bytes of UTF-8. */
const utf8 = (text: string): string => decodeText(Buffer.from(text, 'latin1'), 'utf-8')

/** Returns the parts with the text of a mail, in order: of alternatives the plain text, or the last that has text. */
export function textParts(part: Part): readonly Part[] {
  if (part.parts.length === 0) return part.isAttachment || part.type.startsWith('multipart/') ? [] : [part]
  const texts = part.parts.map(textParts).filter((found) => found.length > 0)
  if (part.type !== 'multipart/alternative') return texts.flat()
  return texts.find(([first]) => first?.type === 'text/plain') ?? texts.at(-1) ?? []
}

/** Returns the parts that are files, in order. */
export const attachmentParts = (part: Part): readonly Part[] =>
  part.parts.length > 0 ? part.parts.flatMap(attachmentParts) : part.isAttachment ? [part] : []

/** Undoes the transfer encoding of a part, which may be cut off at its end. */
export function decodeTransfer(bytes: Buffer, encoding: string): Buffer {
  if (encoding === 'base64') return Buffer.from(bytes.toString('latin1'), 'base64')
  return encoding === 'quoted-printable' ? fromQuotedPrintable(bytes) : bytes
}

/** See RFC 2045, section 6.7. Keeps sequences of any other form. */
function fromQuotedPrintable(bytes: Buffer): Buffer {
  const lines = bytes
    .toString('latin1')
    .split('\n')
    .map((line) => line.trimEnd())
  // A line that ends with an equals sign continues on the next one.
  const text = lines
    .map((line, index) => (line.endsWith('=') ? line.slice(0, -1) : index < lines.length - 1 ? `${line}\r\n` : line))
    .join('')
    .replace(/=([\da-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(text, 'latin1')
}

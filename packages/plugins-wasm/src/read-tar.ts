/**
 * Reads a tar archive in memory. No file is ever written under a name from an archive. An archive with anything that a packer of
 * two plain files would not produce is refused as a whole.
 */
import { AppError } from '@sluice/sdk'

export const ENTRIES_MAX = 256
const BLOCK = 512
/** The fields of a ustar header that are read here: offset and length in bytes. */
const FIELD = {
  name: [0, 100],
  size: [124, 12],
  checksum: [148, 8],
  type: [156, 1],
  linkTarget: [157, 100],
  magic: [257, 6],
  prefix: [345, 155],
} as const
type Field = (typeof FIELD)[keyof typeof FIELD]
const SPACE = 0x20
const NAME_CHARS_MAX = 200
/** The keys that an extended header may have. None of them changes the name, size or kind of an entry. */
const PAX_KEYS_ALLOWED =
  /^(?:mtime|atime|ctime|uid|gid|uname|gname|comment|LIBARCHIVE\.creationtime|(?:LIBARCHIVE|SCHILY)\.xattr\.com\.apple\..+)$/

/** Returns the regular files by name, without the folder that contains all of them, if any. Throws `invalid_request`. */
export function readTar(bytes: Uint8Array): ReadonlyMap<string, Uint8Array> {
  const archive = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const files = new Map<string, Uint8Array>()
  const seen = new Set<string>()
  let entries = 0
  let at = 0
  for (;;) {
    const header = archive.subarray(at, at + BLOCK)
    if (header.length < BLOCK) throw refused('it is cut short')
    if (header.every((byte) => byte === 0)) break
    if (++entries > ENTRIES_MAX) throw refused(`it has more than ${ENTRIES_MAX} entries`)
    const { name, size, type } = readHeader(header)
    const content = archive.subarray(at + BLOCK, at + BLOCK + size)
    if (content.length < size) throw refused('it is cut short')
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK
    if (type === 'x' || type === 'g') {
      checkPax(content)
      continue
    }
    if (type !== '0' && type !== '5') throw refused('it has an entry that is neither a file nor a folder')
    if (type === '5' && size > 0) throw refused('it has a folder with content')
    const path = checkedPath(name, type)
    if (path === '') continue
    // Some file systems ignore case.
    if (seen.has(path.toLowerCase())) throw refused('two entries have the same name')
    seen.add(path.toLowerCase())
    if (type === '0') files.set(path, content)
  }
  if (archive.subarray(at).some((byte) => byte !== 0)) throw refused('it has data after its end')
  return withoutCommonFolder(files)
}

const refused = (reason: string): AppError => new AppError('invalid_request', `The archive is refused: ${reason}`)

interface Header {
  readonly name: string
  readonly size: number
  readonly type: string
}

/** Refuses a header with a wrong checksum or a link. */
function readHeader(header: Buffer): Header {
  const magic = rawText(header, FIELD.magic)
  if (magic !== 'ustar\0' && magic !== 'ustar ') throw refused('it is not a tar archive of the kind ustar')
  if (numberIn(header, FIELD.checksum) !== checksumOf(header)) throw refused('a checksum is wrong')
  if (textIn(header, FIELD.linkTarget) !== '') throw refused('it contains a link')
  // The format of GNU uses the bytes of the prefix for other values.
  const prefix = magic === 'ustar\0' ? textIn(header, FIELD.prefix) : ''
  const type = rawText(header, FIELD.type)
  return {
    name: (prefix === '' ? '' : `${prefix}/`) + textIn(header, FIELD.name),
    size: numberIn(header, FIELD.size),
    // Old archives mark a regular file with a NUL.
    type: type === '\0' ? '0' : type,
  }
}

/** Sums up the bytes of the header, with the checksum field itself counted as spaces. */
function checksumOf(header: Buffer): number {
  const [start, length] = FIELD.checksum
  return header.reduce((total, byte, index) => total + (index >= start && index < start + length ? SPACE : byte), 0)
}

const rawText = (header: Buffer, [start, length]: Field): string => header.toString('latin1', start, start + length)

/** Returns the text of a field up to the first NUL. Only more NULs may follow. */
function textIn(header: Buffer, field: Field): string {
  const text = rawText(header, field)
  const end = text.indexOf('\0')
  if (end < 0) return text
  if (/[^\0]/.test(text.slice(end))) throw refused('a name contains a NUL')
  return text.slice(0, end)
}

function numberIn(header: Buffer, field: Field): number {
  const digits = /^ *([0-7]{1,11})[ \0]*$/.exec(rawText(header, field))?.[1]
  if (digits === undefined) throw refused('a number is not octal')
  return Number.parseInt(digits, 8)
}

/** Returns the path of an entry, empty for the root folder. Refuses every path that is not plain and relative. */
function checkedPath(name: string, type: string): string {
  const path = name.replace(/^(?:\.\/)+/, '').replace(type === '5' ? /\/$/ : /$^/, '')
  if (path === '' || path === '.') {
    if (type === '5') return ''
    throw refused('a file has no name')
  }
  if (path.length > NAME_CHARS_MAX) throw refused(`a name is longer than ${NAME_CHARS_MAX} characters`)
  const isPlain = path.split('/').every((segment) => /^[0-9A-Za-z_@+ .-]+$/.test(segment) && !/^\.{1,2}$|^ |[ .]$/.test(segment))
  if (!isPlain) throw refused('a name is not a plain relative path')
  return path
}

/** Checks an extended header, which may hold times, owners and attributes of macOS, but must not change what an entry is. */
function checkPax(content: Buffer): void {
  let at = 0
  while (at < content.length) {
    const length = /^(\d{1,6}) /.exec(content.toString('latin1', at, at + 8))?.[1]
    const record = content.toString('latin1', at, at + Number(length ?? 0))
    const key = /^\d+ ([^=]+)=[\s\S]*\n$/.exec(record)?.[1]
    if (key === undefined || record.length !== Number(length)) throw refused('an extended header is malformed')
    if (!PAX_KEYS_ALLOWED.test(key)) throw refused('an extended header changes what an entry is')
    at += record.length
  }
}

/** Removes the first folder from all names if they share it. */
function withoutCommonFolder(files: ReadonlyMap<string, Uint8Array>): ReadonlyMap<string, Uint8Array> {
  const [first] = files.keys()
  const folder = first?.includes('/') ? first.slice(0, first.indexOf('/') + 1) : ''
  if (folder === '' || ![...files.keys()].every((name) => name.startsWith(folder))) return files
  return new Map([...files].map(([name, content]) => [name.slice(folder.length), content]))
}

/**
 * Reads a tar archive in memory. Nothing is ever written under a name an archive gives; still, one with anything in it that
 * an honest packer of two files would not put there is refused as a whole.
 */
import { AppError } from '@sluice/sdk'

export const ENTRIES_MAX = 256
const BLOCK = 512
const NAME_CHARS_MAX = 200
/** Of a header that describes the next entry or all that follow. */
const PAX_KEYS_ALLOWED =
  /^(?:mtime|atime|ctime|uid|gid|uname|gname|comment|LIBARCHIVE\.creationtime|(?:LIBARCHIVE|SCHILY)\.xattr\.com\.apple\..+)$/

/** Regular files by their name, without the one folder they may all be in. Throws `invalid_request`. */
export function readTar(bytes: Uint8Array): ReadonlyMap<string, Uint8Array> {
  const archive = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const files = new Map<string, Uint8Array>()
  const seen = new Set<string>()
  let entries = 0
  let at = 0
  for (;;) {
    const header = archive.subarray(at, at + BLOCK)
    if (header.length < BLOCK) throw hostile('it is cut short')
    if (header.every((byte) => byte === 0)) break
    if (++entries > ENTRIES_MAX) throw hostile(`it has more than ${ENTRIES_MAX} entries`)
    const { name, size, type } = readHeader(header)
    const content = archive.subarray(at + BLOCK, at + BLOCK + size)
    if (content.length < size) throw hostile('it is cut short')
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK
    if (type === 'x' || type === 'g') {
      checkPax(content)
      continue
    }
    if (type !== '0' && type !== '5') throw hostile('it has an entry that is neither file nor folder')
    if (type === '5' && size > 0) throw hostile('it has a folder with content')
    const path = checkedPath(name, type)
    if (path === '') continue
    // As file systems that ignore case would see it.
    if (seen.has(path.toLowerCase())) throw hostile('two entries have the same name')
    seen.add(path.toLowerCase())
    if (type === '0') files.set(path, content)
  }
  if (archive.subarray(at).some((byte) => byte !== 0)) throw hostile('something follows its end')
  return withoutCommonFolder(files)
}

const hostile = (why: string): AppError => new AppError('invalid_request', `the archive is refused: ${why}`)

interface Header {
  readonly name: string
  readonly size: number
  readonly type: string
}

function readHeader(header: Buffer): Header {
  const magic = header.toString('latin1', 257, 263)
  if (magic !== 'ustar\0' && magic !== 'ustar ') throw hostile('it is no tar archive of the kind ustar')
  const sum = header.reduce((total, byte, index) => total + (index >= 148 && index < 156 ? 0x20 : byte), 0)
  if (numberAt(header, 148, 8) !== sum) throw hostile('a checksum is wrong')
  if (textOf(header, 157, 100) !== '') throw hostile('it has a link in it')
  const prefix = magic === 'ustar\0' ? textOf(header, 345, 155) : ''
  const type = header[156] === 0 ? '0' : header.toString('latin1', 156, 157)
  return { name: (prefix === '' ? '' : `${prefix}/`) + textOf(header, 0, 100), size: numberAt(header, 124, 12), type }
}

/** Up to the first NUL; after that, only more of them. */
function textOf(header: Buffer, at: number, length: number): string {
  const field = header.toString('latin1', at, at + length)
  const end = field.indexOf('\0')
  if (end < 0) return field
  if (/[^\0]/.test(field.slice(end))) throw hostile('a name has a NUL in it')
  return field.slice(0, end)
}

function numberAt(header: Buffer, at: number, length: number): number {
  const field = header.toString('latin1', at, at + length)
  const digits = /^ *([0-7]{1,11})[ \0]*$/.exec(field)?.[1]
  if (digits === undefined) throw hostile('a number is not octal')
  return Number.parseInt(digits, 8)
}

/** Relative and plain; empty for the folder everything is in. */
function checkedPath(name: string, type: string): string {
  const path = name.replace(/^(?:\.\/)+/, '').replace(type === '5' ? /\/$/ : /$^/, '')
  if (path === '' || path === '.') {
    if (type === '5') return ''
    throw hostile('a file has no name')
  }
  if (path.length > NAME_CHARS_MAX) throw hostile(`a name is longer than ${NAME_CHARS_MAX} characters`)
  const isPlain = path.split('/').every((segment) => /^[0-9A-Za-z_@+ .-]+$/.test(segment) && !/^\.{1,2}$|^ |[ .]$/.test(segment))
  if (!isPlain) throw hostile('a name is not a plain relative path')
  return path
}

/** A pax header may tell times, owners and what a Mac notes; one that changes name, size or kind of an entry would be a second truth. */
function checkPax(content: Buffer): void {
  let at = 0
  while (at < content.length) {
    const length = /^(\d{1,6}) /.exec(content.toString('latin1', at, at + 8))?.[1]
    const record = content.toString('latin1', at, at + Number(length ?? 0))
    const key = /^\d+ ([^=]+)=[\s\S]*\n$/.exec(record)?.[1]
    if (key === undefined || record.length !== Number(length)) throw hostile('an extended header is malformed')
    if (!PAX_KEYS_ALLOWED.test(key)) throw hostile('an extended header changes what an entry is')
    at += record.length
  }
}

function withoutCommonFolder(files: ReadonlyMap<string, Uint8Array>): ReadonlyMap<string, Uint8Array> {
  const [first] = files.keys()
  const folder = first?.includes('/') ? first.slice(0, first.indexOf('/') + 1) : ''
  if (folder === '' || ![...files.keys()].every((name) => name.startsWith(folder))) return files
  return new Map([...files].map(([name, content]) => [name.slice(folder.length), content]))
}

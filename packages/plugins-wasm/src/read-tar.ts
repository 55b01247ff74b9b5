/**
 * Reads a tar archive in memory. No file is ever written under a name from an archive. An archive with anything that a packer of
 * two plain files would not produce is refused as a whole.
 */
import { AppError, errorText } from '@sluice/sdk'
import { unpackTar } from 'modern-tar'

export const ENTRIES_MAX = 256
const BLOCK = 512
/** The required content of a header's fields: offset, length, pattern, and the reason for a refusal. The library reads more than this. */
const RULES: readonly (readonly [start: number, length: number, pattern: RegExp, reason: string])[] = [
  // The format of GNU uses the bytes of the prefix for other values.
  [257, 243, /^ustar(?: .*|\0.{82}[\x20-\x7e]*\0*)$/s, 'it is not a tar archive of the kind ustar'],
  [0, 100, /^[\x20-\x7e]*\0*$/, 'a name contains a NUL or a character beyond ASCII'],
  [124, 12, /^ *[0-7]{1,11}[ \0]*$/, 'a number is not octal'],
  [148, 8, /^ *[0-7]{1,8}[ \0]*$/, 'a number is not octal'],
  // Old archives mark a regular file with a NUL. Extended headers are entries of their own.
  [156, 1, /^[05xg\0]$/, 'it has an entry that is neither a file nor a folder'],
  [157, 100, /^\0*$/, 'it contains a link'],
]
const NAME_CHARS_MAX = 200
/** The keys that an extended header may have. None of them changes the name, size or kind of an entry. */
const PAX_KEYS_ALLOWED =
  /^(?:mtime|atime|ctime|uid|gid|uname|gname|comment|LIBARCHIVE\.creationtime|(?:LIBARCHIVE|SCHILY)\.xattr\.com\.apple\..+)$/

/** Resolves to the regular files by name, without the folder that contains all of them, if any. Throws `invalid_request`. */
export async function readTar(bytes: Uint8Array): Promise<ReadonlyMap<string, Uint8Array>> {
  checkHeaders(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  const entries = await unpackTar(bytes, { strict: true }).catch((error: unknown) => {
    throw refused(errorText(error).replace(/\.$/, ''))
  })
  const files = new Map<string, Uint8Array>()
  const seen = new Set<string>()
  for (const { header, data } of entries) {
    const path = checkedPath(header.name, data === undefined)
    if (path === '') continue
    // Some file systems ignore case.
    if (seen.has(path.toLowerCase())) throw refused('two entries have the same name')
    seen.add(path.toLowerCase())
    if (data) files.set(path, data)
  }
  return withoutCommonFolder(files)
}

const refused = (reason: string): AppError => new AppError('invalid_request', `The archive is refused: ${reason}`)

/** Refuses what the library accepts or ignores. Stops at the first block of zeros, after which the library accepts only more of them. */
function checkHeaders(archive: Buffer): void {
  let entries = 0
  for (let at = 0; archive.subarray(at, at + BLOCK).some((byte) => byte !== 0); ) {
    if (++entries > ENTRIES_MAX) throw refused(`it has more than ${ENTRIES_MAX} entries`)
    const header = archive.toString('latin1', at, at + BLOCK)
    for (const [start, length, pattern, reason] of RULES) if (!pattern.test(header.slice(start, start + length))) throw refused(reason)
    const size = Number.parseInt(header.slice(124, 136), 8)
    const type = header[156] ?? ''
    if (type === '5' && size > 0) throw refused('it has a folder with content')
    if (type < '5' && /^[^\0]*\/\0/.test(`${header.slice(0, 100)}\0`)) throw refused('a file has the name of a folder')
    if (type > '5') checkPax(archive.subarray(at + BLOCK, at + BLOCK + size))
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK
  }
}

/** Returns the path of an entry, empty for the root folder. Refuses every path that is not plain and relative. */
function checkedPath(name: string, isFolder: boolean): string {
  const path = name.replace(/^(?:\.\/)+/, '').replace(isFolder ? /\/$/ : /$^/, '')
  if (path === '' || path === '.') {
    if (isFolder) return ''
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

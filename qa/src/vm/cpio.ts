/** Writes cpio archives in the "newc" format, which a Linux kernel unpacks as its first file system. */

/** A file or a folder of the archive. */
export interface ArchiveEntry {
  /** A relative path without a leading slash. */
  readonly path: string
  /** Absent for a folder. */
  readonly bytes?: Uint8Array
  readonly executable?: boolean
}

const FOLDER = 0o040755
const FILE = 0o100644
const PROGRAM = 0o100755
const TRAILER = 'TRAILER!!!'

/** Folders must come before their contents. */
export function createArchive(entries: readonly ArchiveEntry[]): Buffer {
  const parts = entries.flatMap(({ path, bytes, executable }, index) =>
    member(path, bytes ?? new Uint8Array(), bytes === undefined ? FOLDER : executable ? PROGRAM : FILE, index + 1),
  )
  return Buffer.concat([...parts, ...member(TRAILER, new Uint8Array(), 0, 0)])
}

function member(path: string, bytes: Uint8Array, mode: number, inode: number): Uint8Array[] {
  const name = Buffer.from(`${path}\0`)
  // Magic, inode, mode, owner, group, links, time, size, device (4 numbers), name length, checksum.
  const numbers = [inode, mode, 0, 0, 1, 0, bytes.length, 0, 0, 0, 0, name.length, 0]
  const header = Buffer.from(`070701${numbers.map((number) => number.toString(16).padStart(8, '0')).join('')}`)
  return [header, name, padding(header.length + name.length), bytes, padding(bytes.length)]
}

const padding = (length: number): Uint8Array => new Uint8Array((4 - (length % 4)) % 4)

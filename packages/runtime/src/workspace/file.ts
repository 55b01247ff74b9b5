/** Reads, replaces, removes and lists the entries of a folder that is held open, never through a link. */
import { randomBytes } from 'node:crypto'
import { constants, type Stats } from 'node:fs'
import { type FileHandle, lstat, open, opendir, rename, rmdir, unlink } from 'node:fs/promises'
import { AppError, type OpenFile, type WorkspaceEntry } from '@sluice/sdk'
import type { Folder } from './folder.ts'

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants
/** The largest number of entries that a listing reads. */
const ENTRIES_SCANNED_MAX = 100_000
/** The size of a piece of a file that is read piece by piece. */
const PIECE_BYTES = 65_536

export async function readFile(folder: Folder, name: string, bytesMax: number): Promise<Uint8Array> {
  const { file, size } = await openPlain(folder, name, bytesMax)
  await using _ = file
  return await readAll(file, size, bytesMax)
}

export async function openFile(folder: Folder, name: string, bytesMax: number): Promise<OpenFile> {
  const { file, size, modifiedAtMs } = await openPlain(folder, name, bytesMax)
  let at = 0
  return {
    bytes: size,
    modifiedAtMs,
    async read() {
      const piece = Buffer.allocUnsafe(Math.min(PIECE_BYTES, size - at))
      if (piece.length === 0) return piece
      const { bytesRead } = await file.read(piece, 0, piece.length, at)
      if (bytesRead === 0) throw new AppError('conflict', 'the file was shortened while it was read')
      at += bytesRead
      return piece.subarray(0, bytesRead)
    },
    [Symbol.asyncDispose]: () => file.close(),
  }
}

interface PlainFile {
  readonly file: FileHandle
  readonly size: number
  readonly modifiedAtMs: number
}

async function openPlain(folder: Folder, name: string, bytesMax: number): Promise<PlainFile> {
  // Non-blocking: opening a FIFO would wait for its writer.
  const file = await open(folder.at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  try {
    const found = await file.stat()
    checkPlain(found)
    if (found.size > bytesMax) throw tooLarge(found.size, bytesMax)
    return { file, size: found.size, modifiedAtMs: found.mtimeMs }
  } catch (error) {
    await file.close()
    throw error
  }
}

/** Reads to the end of the file, which may have grown since `size` was measured. */
async function readAll(file: FileHandle, size: number, bytesMax: number): Promise<Uint8Array> {
  let bytes = Buffer.allocUnsafe(Math.min(size, bytesMax) + 1)
  let length = 0
  for (;;) {
    const { bytesRead } = await file.read(bytes, length, bytes.length - length)
    if (bytesRead === 0) return bytes.subarray(0, length)
    length += bytesRead
    if (length > bytesMax) throw tooLarge(length, bytesMax)
    if (length === bytes.length) bytes = Buffer.concat([bytes], Math.min(2 * length, bytesMax + 1))
  }
}

/** Writes a new file and renames it over the old one, so that a reader sees one of the two as a whole. Keeps the mode. */
export async function replaceFile(folder: Folder, name: string, bytes: Uint8Array): Promise<void> {
  const replaced = await lstat(folder.at(name)).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (replaced) checkPlain(replaced)
  const draft = folder.at(`.sluice-${randomBytes(8).toString('hex')}.tmp`)
  const file = await open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o666)
  try {
    try {
      if (replaced) await file.chmod(replaced.mode & 0o777)
      await file.writeFile(bytes)
      await file.sync()
    } finally {
      await file.close()
    }
    await folder.verify()
    await rename(draft, folder.at(name))
  } catch (error) {
    await unlink(draft).catch(() => undefined)
    throw error
  }
  await folder.sync()
}

/** Removes a file, a link (never what it points to) or an empty folder. */
export async function removeEntry(folder: Folder, name: string): Promise<void> {
  const path = folder.at(name)
  const found = await lstat(path)
  await (found.isDirectory() ? rmdir(path) : unlink(path))
  await folder.sync()
}

/** The beginning of the name of a folder in which a sandbox is tried out for a moment. No list has it. */
export const TRIAL_FOLDER = '.sluice-proof-'

export async function listFolder(folder: Folder, limit: number): Promise<{ entries: WorkspaceEntry[]; more: boolean }> {
  const names: string[] = []
  for await (const { name } of await opendir(folder.path)) {
    if (!name.startsWith(TRIAL_FOLDER)) names.push(name)
    if (names.length > ENTRIES_SCANNED_MAX) break
  }
  names.sort()
  return { entries: await entriesNamed(folder, names.slice(0, limit)), more: names.length > limit }
}

/** Describes the entries with these names. An entry that is gone is left out. */
export async function entriesNamed(folder: Folder, names: readonly string[]): Promise<WorkspaceEntry[]> {
  const entries: WorkspaceEntry[] = []
  for (const name of names) {
    const found = await lstat(folder.at(name)).catch(() => undefined)
    if (found) entries.push(describe(name, found))
  }
  return entries
}

function describe(name: string, found: Stats): WorkspaceEntry {
  const kind = found.isFile() ? 'file' : found.isDirectory() ? 'folder' : found.isSymbolicLink() ? 'link' : 'other'
  return { name, kind, bytes: kind === 'file' ? found.size : 0, modifiedAtMs: Math.trunc(found.mtimeMs) }
}

/** Throws unless it is a file with one name: a second one may lie outside the workspace. */
function checkPlain(found: Stats): void {
  if (found.isDirectory()) throw new AppError('invalid_request', 'it is a folder')
  if (found.isSymbolicLink()) throw new AppError('forbidden', 'it is a link, and links are not followed')
  if (!found.isFile()) throw new AppError('forbidden', 'it is not a plain file')
  if (found.nlink > 1) throw new AppError('forbidden', 'it is a hard link, whose other name may be outside the workspace')
}

const tooLarge = (size: number, bytesMax: number) =>
  new AppError('too_large', `it has ${size} bytes or more, over the limit of ${bytesMax}`)

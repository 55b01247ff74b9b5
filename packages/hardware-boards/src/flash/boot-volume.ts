/** The volume that a board in its boot loader shows: finds it among the mounts of this machine and copies an image to it. */
import { constants } from 'node:fs'
import { type FileHandle, lstat, open, readdir, readFile, realpath, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { AppError, errorText } from '@sluice/sdk'

const INFO_BYTES_MAX = 4096
const MOUNTS_MAX = 256
const PIECE_BYTES = 65_536
const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants
/** After the last block the board restarts and takes its volume away, while the system is still writing to it. */
const VOLUME_GONE: ReadonlySet<string> = new Set(['EIO', 'ENODEV', 'ENXIO', 'ENOENT', 'ENOTCONN', 'EROFS'])

export interface BootVolume {
  /** An absolute path. */
  readonly folder: string
  /** The device number of the file system, from `stat`. */
  readonly device: number
}

/** The mounts of a machine. */
export interface Mounts {
  /** Returns folders on which a volume may be mounted. They need not exist. */
  list(): Promise<readonly string[]>
  /** Resolves to whether something is mounted on this very folder. */
  isMount(folder: string): Promise<boolean>
}

/**
 * Returns the volume whose `INFO_UF2.TXT` names this board, or undefined without such a volume. Throws `conflict` when there are
 * several, because it is not clear which one to use.
 */
export async function findBootVolume(boardId: string, mounts: Mounts = mountsHere): Promise<BootVolume | undefined> {
  const checked = await Promise.all((await mounts.list()).slice(0, MOUNTS_MAX).map((folder) => volumeAt(folder, boardId, mounts)))
  const found = checked.filter((volume) => volume !== undefined)
  if (found.length > 1) {
    const where = found.map(({ folder }) => folder).join(', ')
    throw new AppError('conflict', `Several boards wait in their boot loader (${where}): unplug all but one`)
  }
  return found[0]
}

async function volumeAt(folder: string, boardId: string, mounts: Mounts): Promise<BootVolume | undefined> {
  try {
    if ((await realpath(folder)) !== folder || !(await mounts.isMount(folder))) return undefined
    const here = await lstat(folder)
    if (!here.isDirectory()) return undefined
    return hasBoardId(await readInfo(join(folder, 'INFO_UF2.TXT'), here.dev), boardId) ? { folder, device: here.dev } : undefined
  } catch {
    // The volume was removed meanwhile, or may not be read.
    return undefined
  }
}

async function readInfo(path: string, device: number): Promise<string> {
  await using file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  const found = await file.stat()
  if (!found.isFile() || found.dev !== device || found.size > INFO_BYTES_MAX) return ''
  const { bytesRead, buffer } = await file.read(Buffer.alloc(INFO_BYTES_MAX), 0, INFO_BYTES_MAX, 0)
  return buffer.toString('latin1', 0, bytesRead)
}

export const hasBoardId = (info: string, boardId: string): boolean =>
  info.split(/\r?\n/).some((line) => line.startsWith('Board-ID:') && line.slice('Board-ID:'.length).trim() === boardId)

export const mountsHere: Mounts = {
  /** Lists FAT file systems only, because boot volumes have one. */
  async list() {
    if (process.platform === 'darwin') return (await readdir('/Volumes').catch(() => [])).map((name) => join('/Volumes', name))
    const lines = (await readFile('/proc/self/mounts', 'utf8').catch(() => '')).split('\n')
    return lines.flatMap((line) => {
      const [, folder = '', kind = ''] = line.split(' ')
      return kind === 'vfat' || kind === 'msdos' ? [unescaped(folder)] : []
    })
  },
  async isMount(folder) {
    const [here, above] = await Promise.all([lstat(folder), lstat(dirname(folder))])
    return here.dev !== above.dev
  },
}

/** Decodes the octal escapes of a path in `/proc/self/mounts`, such as `\040` for a space. */
const unescaped = (path: string): string =>
  path.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))

/**
 * Copies an image to the volume, and calls `onProgress` with the bytes written so far. Resolves once all bytes are written;
 * whether the board accepted them shows when it comes back. Throws `unavailable` when the image cannot be written, `forbidden`
 * when the file is not on the volume, and `aborted` between two pieces: the board then still waits for a whole image.
 */
export async function copyImage(
  volume: BootVolume,
  image: Uint8Array,
  signal: AbortSignal,
  onProgress: (bytes: number) => void,
): Promise<void> {
  const path = join(volume.folder, 'sluice.uf2')
  try {
    const file = await open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
    try {
      if ((await file.stat()).dev !== volume.device) throw new AppError('forbidden', `${path} is not on the board`)
      await writeAll(file, image, signal, onProgress)
      await file.sync().catch(unlessGone)
    } catch (error) {
      // A partial file would make the next attempt fail.
      await rm(path, { force: true }).catch(() => undefined)
      throw error
    } finally {
      await file.close().catch(unlessGone)
    }
  } catch (cause) {
    if (cause instanceof AppError) throw cause
    throw new AppError('unavailable', `The image cannot be copied to ${volume.folder}: ${errorText(cause)}`, { cause })
  }
}

async function writeAll(file: FileHandle, image: Uint8Array, signal: AbortSignal, onProgress: (bytes: number) => void): Promise<void> {
  for (let at = 0; at < image.length; ) {
    if (signal.aborted) throw new AppError('aborted', 'Flashing was aborted: the board waits in its boot loader, flash it again')
    const { bytesWritten } = await file.write(image, at, Math.min(PIECE_BYTES, image.length - at), at)
    at += bytesWritten
    onProgress(at)
  }
}

function unlessGone(error: NodeJS.ErrnoException): void {
  if (!VOLUME_GONE.has(error.code ?? '')) throw error
}

/** The volume a board in its boot loader shows: found among the mounts of this machine, and proved to be what it says. */
import { constants } from 'node:fs'
import { lstat, open, readdir, readFile, realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { AppError } from '@sluice/sdk'

const INFO_BYTES_MAX = 4096
const MOUNTS_MAX = 256
const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants

export interface BootVolume {
  /** Absolute. */
  readonly folder: string
  /** Of the file system, as `stat` tells it. */
  readonly device: number
}

/** The mounts of a machine. */
export interface Mounts {
  /** Folders on which a volume may be mounted; they need not be there. */
  list(): Promise<readonly string[]>
  /** Whether something is mounted on this very folder. */
  isMount(folder: string): Promise<boolean>
}

/**
 * The one volume whose `INFO_UF2.TXT` names this board; undefined: there is none. Throws `conflict` when there are several:
 * which of them is meant cannot be told.
 */
export async function findBootVolume(boardId: string, mounts: Mounts = mountsHere): Promise<BootVolume | undefined> {
  const looked = await Promise.all((await mounts.list()).slice(0, MOUNTS_MAX).map((folder) => volumeAt(folder, boardId, mounts)))
  const found = looked.filter((volume) => volume !== undefined)
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
    // It went away meanwhile, or is not ours to read.
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
  /** Volumes of removable media have a FAT file system; others are not looked into. */
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

/** Blanks in paths are spelled out there. */
const unescaped = (path: string): string =>
  path.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))

/** A file of a folder, as text: bounded, regular, and inside of the folder wherever links lead (§4.3). */
import { constants } from 'node:fs'
import { type FileHandle, open, realpath } from 'node:fs/promises'
import { sep } from 'node:path'

export type InsideFile = { readonly text: string } | { readonly problem: string; readonly isMissing?: true }

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** `root` is a real path. Never throws; a problem is a sentence about the file. */
export async function readInside(root: string, file: string, bytesMax: number): Promise<InsideFile> {
  try {
    const real = await realpath(file)
    if (!real.startsWith(root.endsWith(sep) ? root : root + sep))
      return { problem: 'this leads out of the folder of procedures; it is not read' }
    // Neither waits for a pipe's other end nor follows a link that was put there since.
    await using handle = await open(real, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
    return await readText(handle, bytesMax)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return { problem: 'this file is missing', isMissing: true }
    return { problem: error instanceof TypeError ? 'this is not UTF-8' : `this cannot be read (${code ?? 'unknown'})` }
  }
}

async function readText(handle: FileHandle, bytesMax: number): Promise<InsideFile> {
  const { size } = await handle.stat().then((stats) => (stats.isFile() ? stats : { size: undefined }))
  if (size === undefined) return { problem: 'this is no regular file' }
  if (size > bytesMax) return { problem: `this has ${size} bytes; at most ${bytesMax} are read` }
  const buffer = Buffer.allocUnsafe(size)
  const { bytesRead } = await handle.read(buffer, 0, size, 0)
  return { text: utf8.decode(buffer.subarray(0, bytesRead)) }
}

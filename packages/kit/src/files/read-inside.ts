/** Reads a file as text, provided that it is regular, of bounded size, and inside a folder after links are resolved. */
import { constants } from 'node:fs'
import { type FileHandle, open, realpath } from 'node:fs/promises'
import { sep } from 'node:path'

export type InsideFile = { readonly text: string } | { readonly problem: string; readonly isMissing?: true }

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** `root`, the folder, must be a real path. Never throws; a problem is a sentence about the file. */
export async function readInside(root: string, file: string, bytesMax: number): Promise<InsideFile> {
  try {
    const real = await realpath(file)
    if (!real.startsWith(root.endsWith(sep) ? root : root + sep)) return { problem: 'this links to a file outside of the folder' }
    // Does not block on a pipe, and does not follow a link created after `realpath`.
    await using handle = await open(real, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
    return await readText(handle, bytesMax)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return { problem: 'this file is missing', isMissing: true }
    return { problem: error instanceof TypeError ? 'this file is not UTF-8' : `this file cannot be read (${code ?? 'unknown'})` }
  }
}

async function readText(handle: FileHandle, bytesMax: number): Promise<InsideFile> {
  const { size } = await handle.stat().then((stats) => (stats.isFile() ? stats : { size: undefined }))
  if (size === undefined) return { problem: 'this is not a regular file' }
  if (size > bytesMax) return { problem: `this file has ${size} bytes; the limit is ${bytesMax}` }
  const buffer = Buffer.allocUnsafe(size)
  const { bytesRead } = await handle.read(buffer, 0, size, 0)
  return { text: utf8.decode(buffer.subarray(0, bytesRead)) }
}

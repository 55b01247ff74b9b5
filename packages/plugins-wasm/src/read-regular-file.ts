/** Reads a file that is one: no link is followed, no pipe is waited for, and nothing larger than allowed is read. */
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { AppError } from '@sluice/sdk'

/** Undefined if there is none. Throws `invalid_request` for anything but a regular file and `too_large`. `what` names it. */
export async function readRegularFile(path: string, bytesMax: number, what: string): Promise<Uint8Array | undefined> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined
    throw new AppError('invalid_request', `${what} cannot be read as a file: ${error.code}`)
  })
  if (!file) return undefined
  try {
    const stat = await file.stat()
    if (!stat.isFile()) throw new AppError('invalid_request', `${what} is no regular file`)
    if (stat.size > bytesMax) throw new AppError('too_large', `${what} is larger than ${bytesMax} bytes`)
    const bytes = Buffer.alloc(stat.size)
    const { bytesRead } = await file.read(bytes, 0, bytes.length, 0)
    return bytes.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

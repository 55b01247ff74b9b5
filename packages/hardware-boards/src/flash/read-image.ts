/** A firmware image from this machine's disk, for people at the command line and for what the operator put in its place. */
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError, errorText } from '@sluice/sdk'

const { O_RDONLY, O_NONBLOCK } = constants

/** Where the image of a board is looked for when none is named. */
export const imagePath = (dataDir: string, board: string, ending: string): string => join(dataDir, 'firmware', `${board}.${ending}`)

/** Throws `not_found`, `invalid_request` for what is no file, `too_large`. */
export async function readImage(path: string, bytesMax: number): Promise<Uint8Array> {
  try {
    await using file = await open(path, O_RDONLY | O_NONBLOCK)
    const found = await file.stat()
    if (!found.isFile()) throw new AppError('invalid_request', `${path} is no file`)
    if (found.size > bytesMax)
      throw new AppError('too_large', `${path} has ${found.size} bytes; an image for this board has at most ${bytesMax}`)
    return await file.readFile()
  } catch (cause) {
    if (cause instanceof AppError) throw cause
    const code = (cause as NodeJS.ErrnoException).code === 'ENOENT' ? 'not_found' : 'unavailable'
    throw new AppError(code, `The image ${path} cannot be read: ${errorText(cause)}`, { cause })
  }
}

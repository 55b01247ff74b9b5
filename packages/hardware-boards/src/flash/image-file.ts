/** Firmware images on this machine's disk, and the check of raw binaries. */
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Board } from '@sluice/hardware'
import { AppError, errorText } from '@sluice/sdk'

const { O_RDONLY, O_NONBLOCK } = constants
/** The two words at the start of a Cortex-M program: the top of its stack and its entry point. */
const HEAD_BYTES = 8

/** Returns the path of the image that is used when the caller names none. */
export const imagePath = (dataDir: string, board: string, ending: string): string => join(dataDir, 'firmware', `${board}.${ending}`)

/** Throws `not_found`, `invalid_request` when the path is not a regular file, `too_large`, and `unavailable`. */
export async function readImage(path: string, bytesMax: number): Promise<Uint8Array> {
  try {
    await using file = await open(path, O_RDONLY | O_NONBLOCK)
    const found = await file.stat()
    if (!found.isFile()) throw new AppError('invalid_request', `${path} is not a regular file`)
    if (found.size > bytesMax)
      throw new AppError('too_large', `${path} has ${found.size} bytes; an image for this board has at most ${bytesMax}`)
    return await file.readFile()
  } catch (cause) {
    if (cause instanceof AppError) throw cause
    const code = (cause as NodeJS.ErrnoException).code === 'ENOENT' ? 'not_found' : 'unavailable'
    throw new AppError(code, `The image ${path} cannot be read: ${errorText(cause)}`, { cause })
  }
}

/** Throws `invalid_request` when the board could not start the binary. */
export function checkBinary(image: Uint8Array, { name, memory }: Board): void {
  const view = new DataView(image.buffer, image.byteOffset, image.byteLength)
  const [stack, start] = image.length < HEAD_BYTES ? [0, 0] : [view.getUint32(0, true), view.getUint32(4, true)]
  const hasStack = memory.some((ram) => ram.name === 'RAM' && stack > ram.start && stack <= ram.start + ram.length)
  const hasStart = memory.some((flash) => flash.name === 'Flash' && start > flash.start && start < flash.start + image.length)
  if (hasStack && hasStart) return
  throw new AppError(
    'invalid_request',
    `The image is not a program for ${name}: it does not begin with a stack in its RAM and an entry point in its flash`,
  )
}

/** Copies an image to the volume of a board in its boot loader, which writes it to flash as it comes. */
import { constants } from 'node:fs'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError, errorText } from '@sluice/sdk'
import type { BootVolume } from './boot-volume.ts'

const PIECE_BYTES = 65_536
const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
/** With its last block the board leaves, and the volume with it, in the middle of what the system still wants to write. */
const GONE: ReadonlySet<string> = new Set(['EIO', 'ENODEV', 'ENXIO', 'ENOENT', 'ENOTCONN', 'EROFS'])

export interface CopyOptions {
  readonly signal: AbortSignal
  /** Called with the bytes written so far. */
  readonly onProgress?: (bytes: number) => void
}

/**
 * Resolves once all bytes are written; whether the board took them shows when it comes back. Throws `unavailable` when they
 * cannot be written, `aborted` between two pieces: the board then waits in its boot loader for a whole image.
 */
export async function copyImage(volume: BootVolume, image: Uint8Array, { signal, onProgress }: CopyOptions): Promise<void> {
  const path = join(volume.folder, 'sluice.uf2')
  try {
    const file = await open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
    try {
      if ((await file.stat()).dev !== volume.device) throw new AppError('forbidden', `${path} is not on the board`)
      await writeAll(file, image, { signal, ...(onProgress && { onProgress }) })
      await file.sync().catch(unlessGone)
    } catch (error) {
      // Else it would be in the way of the next attempt.
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

async function writeAll(file: FileHandle, image: Uint8Array, { signal, onProgress }: CopyOptions): Promise<void> {
  for (let at = 0; at < image.length; ) {
    if (signal.aborted) throw new AppError('aborted', 'Flashing was aborted: the board waits in its boot loader, flash it again')
    const { bytesWritten } = await file.write(image, at, Math.min(PIECE_BYTES, image.length - at), at)
    at += bytesWritten
    onProgress?.(at)
  }
}

function unlessGone(error: NodeJS.ErrnoException): void {
  if (!GONE.has(error.code ?? '')) throw error
}

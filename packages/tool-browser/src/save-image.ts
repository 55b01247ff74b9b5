/** Keeps a screenshot in the workspace. */
import { randomUUID } from 'node:crypto'
import { AppError, type Host } from '@sluice/sdk'

export const IMAGE_BYTES_MAX = 20_971_520

/** Where it goes: the path that was asked for, or a new one. Throws `invalid_request` for what is no name of a PNG file. */
export function imagePath(path: string | undefined): string {
  if (path === undefined) return `screenshots/${randomUUID()}.png`
  // A picture shall not take the place of anything else.
  if (!path.toLowerCase().endsWith('.png')) throw new AppError('invalid_request', "the path of a screenshot ends with '.png'")
  return path
}

export const saveImage =
  ({ workspace }: Pick<Host, 'workspace'>) =>
  async (png: Uint8Array, path: string | undefined): Promise<string> => {
    const where = imagePath(path)
    if (png.length > IMAGE_BYTES_MAX) throw new AppError('too_large', `the screenshot has more than ${IMAGE_BYTES_MAX} bytes`)
    await workspace.write(where, png)
    return where
  }

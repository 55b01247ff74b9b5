/** Stores screenshots in the workspace. */
import { randomUUID } from 'node:crypto'
import { AppError, type Workspace } from '@sluice/sdk'

export const IMAGE_BYTES_MAX = 20_971_520

/**
 * Returns the requested path, or a new one under `screenshots/`. Throws `invalid_request` unless the path ends with `.png`, so
 * that a screenshot cannot overwrite a file of another kind.
 */
export function imagePath(path: string | undefined): string {
  if (path === undefined) return `screenshots/${randomUUID()}.png`
  if (!path.toLowerCase().endsWith('.png')) throw new AppError('invalid_request', "The path of a screenshot must end with '.png'")
  return path
}

/** Writes the image and returns its path. Throws like `imagePath` and `Workspace.write`, and `too_large`. */
export async function saveImage(workspace: Workspace, png: Uint8Array, path: string | undefined): Promise<string> {
  const target = imagePath(path)
  if (png.length > IMAGE_BYTES_MAX) throw new AppError('too_large', `The screenshot is larger than ${IMAGE_BYTES_MAX} bytes`)
  await workspace.write(target, png)
  return target
}

/** Folders held by handle, so that what was checked is what is used, whatever is renamed meanwhile. */
import { constants, existsSync } from 'node:fs'
import { lstat, mkdir, open, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '@sluice/sdk'

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW

/** The place where the kernel shows open handles as paths, or null where it does not. */
export const handlePaths = (): string | null => (existsSync('/proc/self/fd') ? '/proc/self/fd' : null)

export interface Folder extends AsyncDisposable {
  /** A path to this very folder, for as long as it is open. */
  readonly path: string
  /** A path to one of its children, found through the handle: a swapped parent does not lead it astray. */
  at(name: string): string
  /** Puts names made in it on stable storage. */
  sync(): Promise<void>
  /**
   * Throws `forbidden` if the folder's path leads elsewhere by now. Asked before and after each step where handles are
   * not paths; what happens between two such looks goes unseen there.
   */
  verify(): Promise<void>
}

/** Opens a folder that must not be a link. `handles` is what `handlePaths` returned. Throws as `open` does. */
export async function openFolder(path: string, handles: string | null): Promise<Folder> {
  const handle = await open(path, FOLDER)
  const base = handles === null ? path : `${handles}/${handle.fd}`
  return {
    path: base,
    at: (name) => join(base, name),
    sync: () => handle.sync(),
    async verify() {
      if (handles !== null) return
      const [held, found, real] = await Promise.all([handle.stat(), lstat(base), realpath(base)])
      if (held.ino !== found.ino || held.dev !== found.dev || real !== base) {
        throw new AppError('forbidden', 'a folder of the workspace was replaced meanwhile')
      }
    },
    [Symbol.asyncDispose]: () => handle.close(),
  }
}

/** Opens the folder `name` inside `parent`, which is closed; with `create` it is made where it is missing. */
export async function enterFolder(parent: Folder, name: string, options: { handles: string | null; create: boolean }): Promise<Folder> {
  await using here = parent
  if (options.create && (await makeFolder(here.at(name)))) await here.sync()
  try {
    const child = await openFolder(here.at(name), options.handles)
    await here.verify()
    return child
  } catch (error) {
    // Linux says ENOTDIR for a link and for a file alike
    const isLink = await lstat(here.at(name)).then(
      (found) => found.isSymbolicLink(),
      () => false,
    )
    throw isLink ? new AppError('forbidden', `'${name}' is a link, and links are not followed`) : error
  }
}

/** True if it had to be made. */
async function makeFolder(path: string): Promise<boolean> {
  try {
    await mkdir(path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** Folders that are held open by handle, so that the checked folder is the used one even if a path is renamed meanwhile. */
import { constants, existsSync } from 'node:fs'
import { lstat, mkdir, open, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '@sluice/sdk'

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW

/** The folder in which the kernel shows open handles as paths; null on systems that do not. */
export const handlePaths = (): string | null => (existsSync('/proc/self/fd') ? '/proc/self/fd' : null)

export interface Folder extends AsyncDisposable {
  /** A path to this very folder, for as long as it is open. */
  readonly path: string
  /** A path to one of its children through the handle, which a renamed parent does not change. */
  at(name: string): string
  /** Puts the names of new entries on stable storage. */
  sync(): Promise<void>
  /**
   * Throws `forbidden` if the folder's path leads elsewhere by now. Where handles are not paths, it is called before and
   * after each step; a change between two calls that is undone is not noticed there.
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

/** Opens the folder `name` inside `parent`, and closes `parent`. With `create`, a missing folder is made. */
export async function enterFolder(parent: Folder, name: string, options: { handles: string | null; create: boolean }): Promise<Folder> {
  await using here = parent
  if (options.create && (await makeFolder(here.at(name)))) await here.sync()
  try {
    const child = await openFolder(here.at(name), options.handles)
    await here.verify()
    return child
  } catch (error) {
    // Linux reports ENOTDIR for a link as for a file.
    const isLink = await lstat(here.at(name)).then(
      (found) => found.isSymbolicLink(),
      () => false,
    )
    throw isLink ? new AppError('forbidden', `'${name}' is a link, and links are not followed`) : error
  }
}

/** Returns false if the folder exists already. */
async function makeFolder(path: string): Promise<boolean> {
  try {
    await mkdir(path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

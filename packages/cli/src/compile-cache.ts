/**
 * Finds the folder for Node's compile cache. Node runs what it finds there without checking where it came from, so the
 * folder belongs to the calling user, whichever data directory the command works on.
 */
import { lstatSync, mkdirSync, realpathSync, type Stats } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'

const OTHERS_MAY_WRITE = 0o022
const STICKY = 0o1000
const ROOT_UID = 0

export interface Caller {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly home: string
  /** The effective user id; undefined on Windows, where the folder is in the user's own profile. */
  readonly uid: number | undefined
}

const thisCaller = (): Caller => ({ env: process.env, home: homedir(), uid: process.geteuid?.() })

/** Makes the folder if necessary. Returns undefined if another user could write to it or to a folder above it. */
export function compileCacheFolder({ env, home, uid }: Caller = thisCaller()): string | undefined {
  const base = [env.XDG_CACHE_HOME, env.LOCALAPPDATA, home && join(home, '.cache')].find((path) => path && isAbsolute(path))
  if (!base) return undefined
  const folder = join(base, 'sluice', 'compiled')
  try {
    if (uid === undefined) return createFolder(folder)
    return isPrivate(closestRealPath(folder), uid) && isPrivate(createFolder(folder), uid) ? realpathSync(folder) : undefined
  } catch {
    return undefined // Without a cache, commands start somewhat later.
  }
}

function createFolder(folder: string): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  return realpathSync(folder)
}

/** The path, or the closest folder above it that exists, without symbolic links. */
function closestRealPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return closestRealPath(dirname(path))
  }
}

/** Whether only this user and root can change the folder or put another in its place. */
function isPrivate(folder: string, uid: number): boolean {
  if (!isOwn(lstatSync(folder), uid)) return false
  for (let path = dirname(folder); ; path = dirname(path)) {
    const stats = lstatSync(path)
    // In a sticky folder such as /tmp, other users cannot rename or remove a folder that is not theirs.
    if (!isOwn(stats, uid) && !((stats.mode & STICKY) !== 0 && stats.uid === ROOT_UID)) return false
    if (path === dirname(path)) return true
  }
}

const isOwn = ({ uid: owner, mode }: Stats, uid: number): boolean =>
  (owner === uid || owner === ROOT_UID) && (mode & OTHERS_MAY_WRITE) === 0

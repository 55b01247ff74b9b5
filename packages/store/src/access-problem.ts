/** Why this process may not use a file, in words that say what to do. */
import { accessSync, constants, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'

const { R_OK, W_OK, X_OK } = constants

/** Looks at the folder, the file and what SQLite keeps beside it. Undefined if they can be used, or the system knows no owners. */
export function accessProblem(file: string): string | undefined {
  const user = process.getuid?.()
  if (user === undefined) return undefined
  const folder = dirname(file)
  for (const path of [folder, file, `${file}-wal`, `${file}-shm`]) {
    const problem = problemOf(path, folder, user)
    if (problem !== undefined) return problem
  }
  return undefined
}

function problemOf(path: string, folder: string, user: number): string | undefined {
  let found: Stats | undefined
  try {
    found = statSync(path, { throwIfNoEntry: false })
    if (!found) return undefined
    accessSync(path, R_OK | W_OK | (found.isDirectory() ? X_OK : 0))
    return undefined
  } catch (error) {
    if (hasCode(error, 'EROFS')) return `${path} is on a file system that is mounted read-only.`
    if (!found) return `User ${user}, who runs this process, may not look into ${dirname(path)}.`
    if (found.uid === user) return `${path} is not open to its owner (mode ${(found.mode & 0o777).toString(8)}). Run: chmod u+rwX ${path}`
    return `${path} belongs to user ${found.uid}, and this process runs as user ${user}. Run it as that user, or give the folder away: chown -R ${user} ${folder}`
  }
}

const hasCode = (error: unknown, code: string): boolean => error instanceof Error && 'code' in error && error.code === code

/** Explains why this process has no access to a file, and how to fix it. */
import { accessSync, constants, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'

const { R_OK, W_OK, X_OK } = constants

/** Checks the folder, the file and SQLite's side files. Returns undefined when all are accessible or the system has no owners. */
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
    if (!found) return `${dirname(path)} is not readable for user ${user}, who runs this process.`
    if (found.uid === user) {
      return `${path} is not accessible to its owner (mode ${(found.mode & 0o777).toString(8)}). Run: chmod u+rwX ${path}`
    }
    return `${path} belongs to user ${found.uid}, but this process runs as user ${user}. Run it as user ${found.uid}, or change the owner: chown -R ${user} ${folder}`
  }
}

const hasCode = (error: unknown, code: string): boolean => error instanceof Error && 'code' in error && error.code === code

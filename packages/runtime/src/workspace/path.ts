/** The rules for paths of the workspace, applied to their text before any file is touched. */
import { isAbsolute, relative, resolve, sep } from 'node:path'
import { foldedFileName } from '@sluice/kit'
import { AppError } from '@sluice/sdk'

const PATH_BYTES_MAX = 4096
/** True on systems whose usual file systems treat `A` and `a` as one name. */
const foldsCase = process.platform === 'darwin' || process.platform === 'win32'

/** Returns a name as the file system compares it. */
export const foldedName = (name: string): string => (foldsCase ? foldedFileName(name) : name)

/** The names from `root` down to an absolute path; `undefined` if the path is not at or below it. */
function namesBelow(root: string, path: string): string[] | undefined {
  const below = relative(root, path)
  if (below === '') return []
  const names = below.split(sep)
  return names[0] === '..' || isAbsolute(below) ? undefined : names
}

/**
 * The names of the folders down to `path` and its own, none of them `.` or `..`; empty for the workspace itself. `roots`
 * are the spellings of the workspace's own path. Throws `forbidden` for a path that is outside by its text alone.
 */
export function parsePath(path: string, roots: readonly string[]): string[] {
  const outside = () => new AppError('forbidden', `'${path.slice(0, 200)}' is outside the workspace`)
  if (path.includes('\0') || path.split(/[\\/]/).includes('..')) throw outside()
  if (Buffer.byteLength(path) > PATH_BYTES_MAX) throw new AppError('invalid_request', `the path is longer than ${PATH_BYTES_MAX} bytes`)
  if (!isAbsolute(path)) return path.split(sep).filter((name) => name !== '' && name !== '.')
  for (const root of roots) {
    const names = namesBelow(root, resolve(path))
    if (names) return names
  }
  throw outside()
}

/**
 * The entries of `[security.policy] forbidden_paths` that lie inside the workspace, as names below it. A relative entry
 * starts at the workspace; one that contains the whole workspace forbids nothing inside it.
 */
export function forbiddenBelow(roots: readonly string[], forbidden: readonly string[]): string[][] {
  const inside: string[][] = []
  for (const entry of forbidden) {
    for (const root of roots) {
      const names = namesBelow(root, resolve(root, entry))
      if (names) inside.push(names)
    }
  }
  return inside
}

/** True if the path is one of the forbidden ones or below it. */
export function isForbidden(names: readonly string[], forbidden: readonly (readonly string[])[]): boolean {
  const same = (a: string | undefined, b: string) => a !== undefined && foldedName(a) === foldedName(b)
  return forbidden.some((prefix) => prefix.every((name, at) => same(names[at], name)))
}

/** Tells where a path lies. */
import { realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path'

/** True if `path` is `folder` or below it. Both are absolute. Links are not followed: see `withoutLinks`. */
export function isWithin(path: string, folder: string): boolean {
  const below = relative(folder, path)
  return below !== '..' && !below.startsWith(`..${sep}`) && !isAbsolute(below)
}

/** Resolves to the path with the links of the part that exists resolved. The rest stays as it is. */
export const withoutLinks = (path: string): Promise<string> =>
  realpath(path).catch(async () => (dirname(path) === path ? path : join(await withoutLinks(dirname(path)), basename(path))))

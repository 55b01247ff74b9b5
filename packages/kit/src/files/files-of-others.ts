/** Finds the files of a workspace that hold text of others: attachments of messages, and results that are kept for a session. */
import { type Dirent, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { isSessionFolder } from '@sluice/sdk'

/** With the short name and the endings that Windows takes for the same folder. */
const ATTACHMENTS = /^(?:attachments|attach~\d+)[. ]*(?::.*)?$/
const RESULTS = /^results[. ]*(?::.*)?$/
/** `attachments/<owner>/<file>`. */
const DEPTH_MAX = 3

/** Returns a name as any file system may compare it: without case, width and invisible characters. */
export const foldedFileName = (name: string): string =>
  name
    .normalize('NFKC')
    .replace(/\p{Default_Ignorable_Code_Point}/gu, '')
    .toLowerCase()

const namesOf = (path: string): string[] => path.split(/[\\/]+/).filter((name) => name !== '' && name !== '.')

/** Tells by its text whether a path is such a file or folder, or is below one. A path in a folder of the same name elsewhere counts too. */
export function isFileOfOthers(path: string): boolean {
  const names = namesOf(path).map(foldedFileName)
  return names.some((name, at) => ATTACHMENTS.test(name) || (RESULTS.test(name) && isSessionFolder(names[at + 1] ?? '')))
}

/** Tells whether a path of the workspace is such a file or folder, is below one, or is a folder that contains one. */
export function leadsToFilesOfOthers(root: string, path: string): boolean {
  const inside = namesOf(path)
  return isFileOfOthers(path) || inside.includes('..') || resolve(root, path) === root || RESULTS.test(foldedFileName(inside.at(-1) ?? ''))
}

/** Tells whether the workspace has such a file now. A folder that cannot be read counts as one with files. */
export function hasFilesOfOthers(root: string): boolean {
  try {
    return entriesOf(root).some(({ name }) => {
      if (ATTACHMENTS.test(foldedFileName(name))) return hasFile(join(root, name), DEPTH_MAX)
      if (!RESULTS.test(foldedFileName(name))) return false
      return entriesOf(join(root, name)).some((entry) => isSessionFolder(foldedFileName(entry.name)))
    })
  } catch {
    return true
  }
}

function hasFile(folder: string, depth: number): boolean {
  if (depth === 0) return true
  return entriesOf(folder).some((entry) => !entry.isDirectory() || hasFile(join(folder, entry.name), depth - 1))
}

/** Returns the entries of a folder; none for a missing folder and for a file. Throws when the folder cannot be read. */
function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return []
    throw error
  }
}

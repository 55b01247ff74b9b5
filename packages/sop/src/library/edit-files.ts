/**
 * The two files of a procedure for an editor: read with a version, checked, and written. Only folders outside of the workspace are written, because the
 * agent could change a file in the workspace at any time.
 */
import { lstat, mkdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import type { InsideFile } from '@sluice/kit'
import { AppError } from '@sluice/sdk'
import { contentHash } from './agreements.ts'
import type { LoadRules } from './load-rules.ts'
import { checkSop, type LoadedSop } from './load-sop.ts'
import { asFile, readSavedPair, type SopTexts, savePair, textOf } from './sop-pair.ts'

export type { SopTexts } from './sop-pair.ts'

export interface SopFiles extends SopTexts {
  /** The name of the folder. */
  readonly folder: string
  /** The SHA-256 of both texts; null for a folder that is not there. */
  readonly version: string | null
}

export interface OpenedSopFiles extends SopFiles {
  /** A sentence about each file that cannot be read. */
  readonly unreadable: readonly string[]
}

/** A name that is the same on every file system, and leaves no folder. */
const FOLDER = /^[a-z0-9][a-z0-9_-]{0,63}$/i
/** The errors of the file system where the daemon may not write. */
const DENIED: readonly string[] = ['EACCES', 'EPERM', 'EROFS']

/**
 * Resolves to empty texts for a folder that is not there, and for files that cannot be read, which a save replaces. Throws
 * `invalid_request` for a name of no folder.
 */
export async function readSopFiles(root: string, folder: string): Promise<OpenedSopFiles> {
  checkFolder(folder)
  const real = await realpath(root).catch(() => root)
  const { toml, md } = await readSavedPair(real, join(root, folder))
  const unreadable = [problemOf('SOP.toml', toml), problemOf('SOP.md', md)].filter((problem) => problem !== undefined)
  const isThere = 'text' in toml || 'text' in md || unreadable.length > 0
  const version = isThere ? contentHash(textOf(toml), textOf(md)) : null
  return { folder, toml: textOf(toml) ?? '', md: textOf(md) ?? '', version, unreadable }
}

const problemOf = (name: string, file: InsideFile): string | undefined =>
  'problem' in file && !file.isMissing ? `${name}: ${file.problem}` : undefined

/** Checks texts as if they were in the files; problems name `SOP.toml` and `SOP.md` without a folder. */
export const checkSopTexts = ({ toml, md }: SopTexts, rules: LoadRules): Promise<LoadedSop> =>
  checkSop('', { toml: asFile(toml), md: asFile(md) }, rules)

/**
 * Writes both files, and resolves to their new version. Call it for one save after another. Throws `conflict` unless the folder has
 * `version`, and `forbidden` where the daemon may not write.
 */
export async function writeSopFiles(root: string, { folder, toml, md, version }: SopFiles): Promise<string> {
  const present = await readSopFiles(root, folder)
  if (present.version !== version)
    throw new AppError(
      'conflict',
      version === null ? `There is a procedure in '${folder}' already` : `The files in '${folder}' were changed after they were opened`,
    )
  try {
    await write(join(root, folder), { toml, md })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === undefined || !DENIED.includes(code)) throw error
    throw new AppError('forbidden', `The daemon may not write ${join(root, folder)} (${code})`, { cause: error })
  }
  return contentHash(toml, md)
}

/** A link in place of the folder stays as it is, and is refused. */
async function write(folder: string, texts: SopTexts): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  if (!(await lstat(folder)).isDirectory()) throw new AppError('invalid_request', `${folder} is a link: change the files where it leads`)
  await savePair(folder, texts)
}

function checkFolder(folder: string): void {
  if (FOLDER.test(folder)) return
  throw new AppError(
    'invalid_request',
    `The folder of a procedure has 1 to 64 letters, digits, '-' and '_', and begins with none of the last two`,
  )
}

/** Which entries of a data directory belong to a backup, and so are replaced by a restore. */
import { lstatSync, readdirSync, readlinkSync } from 'node:fs'
import { join, relative, resolve, sep } from 'node:path'

/** The names that backups and restores use in a data directory. */
export const RECORD_FILE = 'backup.json'
export const JOURNAL_FILE = 'restore.json'
export const STAGING_PREFIX = '.restore-'
export const ASIDE_PREFIX = 'before-restore-'
export const KEY_FILE = 'secret.key'
export const CONFIG_FILE = 'config.toml'
export const DEFAULT_FOLDER = 'backups'

/** Entries that belong to this machine or to a running process, and stay where they are. */
const STAYING: readonly (string | RegExp)[] = [
  'control.sock',
  'commands',
  RECORD_FILE,
  JOURNAL_FILE,
  DEFAULT_FOLDER,
  'sandbox-fsrestrict',
  'sandbox-userns',
  /^daemon\.lock/,
  /^\.restore-/,
  /^before-restore-/,
  /^config\.toml\.lock/,
  /^\.config\.toml\./,
]
/** Entries that may hold secrets in plain text: other copies of the configuration, and the profiles of browsers with their logins. */
const SECRET: readonly (string | RegExp)[] = [KEY_FILE, /^secret\.key\./, /^config\.toml./, 'tool-browser', 'tool-browser-agents']
/** The database, which is copied from a snapshot, and copies of it from before an upgrade. */
const DATABASE = /^sluice\.db/

const matches = (name: string, patterns: readonly (string | RegExp)[]): boolean =>
  patterns.some((pattern) => (typeof pattern === 'string' ? pattern === name : pattern.test(name)))

/** Whether an entry of a data directory belongs to its machine or to a process, so that no backup has it. */
export const isOfThisMachine = (name: string): boolean => matches(name, STAYING)

/** Whether a restore leaves the entry of the data directory in place. `replacesKey`: the backup has a key file of its own. */
export const staysInPlace = (name: string, replacesKey: boolean): boolean =>
  isOfThisMachine(name) || (!replacesKey && matches(name, SECRET))

/** One file, folder or link below the data directory. */
export interface Entry {
  /** Relative, with `/` between names. */
  readonly path: string
  readonly absolute: string
  readonly type: 'file' | 'directory' | 'symlink'
  readonly bytes: number
  readonly mode: number
  readonly mtime: Date
  /** The target of a link. */
  readonly target?: string
}

export interface ContentsOptions {
  readonly dataDir: string
  readonly withSecrets: boolean
  /** Folders that are left out, such as the one that holds the backups. */
  readonly except: readonly string[]
}

/** Yields every entry except the database and the configuration file, each folder before its entries. Sockets and devices are left out. */
export function* contentsOf({ dataDir, withSecrets, except }: ContentsOptions): Iterable<Entry> {
  const left = new Set(except.map((folder) => resolve(folder)))
  for (const name of namesIn(dataDir)) {
    if (isOfThisMachine(name) || DATABASE.test(name) || name === CONFIG_FILE || (!withSecrets && matches(name, SECRET))) continue
    yield* walk(dataDir, join(dataDir, name), left)
  }
}

function* walk(root: string, absolute: string, left: ReadonlySet<string>): Iterable<Entry> {
  // An entry may be deleted while the walk goes on.
  const stat = lstatSync(absolute, { throwIfNoEntry: false })
  if (!stat || left.has(absolute)) return
  const type = stat.isFile() ? 'file' : stat.isDirectory() ? 'directory' : stat.isSymbolicLink() ? 'symlink' : undefined
  const target = type === 'symlink' ? targetOf(absolute) : undefined
  if (!type || target === '') return
  yield {
    path: relative(root, absolute).split(sep).join('/'),
    absolute,
    type,
    bytes: stat.size,
    mode: stat.mode & 0o777,
    mtime: stat.mtime,
    ...(target !== undefined && { target }),
  }
  if (type === 'directory') for (const name of namesIn(absolute)) yield* walk(root, join(absolute, name), left)
}

/** Returns an empty text for a link that is deleted meanwhile. */
function targetOf(link: string): string {
  try {
    return readlinkSync(link)
  } catch {
    return ''
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).toSorted()
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}

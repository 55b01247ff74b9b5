/**
 * The last step of a restore: moves the old entries of the data directory aside and the new ones into their place. A journal lists the
 * moves before the first one, so that every command finishes a restore that was interrupted.
 */
import { existsSync, lstatSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { replaceDurably, syncFolder } from '@sluice/kit'
import { AppError } from '@sluice/sdk'
import { lockDataDir } from '@sluice/store'
import * as v from 'valibot'
import { JOURNAL_FILE } from './contents.ts'

const name = v.pipe(
  v.string(),
  v.check((text) => text !== '' && text !== '..' && basename(text) === text),
)

const journalSchema = v.object({
  /** The folder in the data directory that holds the new entries. */
  staging: name,
  /** The folder in the data directory that gets the old entries. */
  aside: name,
  /** The entries of the data directory that are replaced or removed. */
  old: v.array(name),
  /** The entries of the staging folder. */
  fresh: v.array(name),
})

export type Journal = v.InferOutput<typeof journalSchema>

/** Decides the restore: from here on, it is finished even if this process ends. */
export function writeJournal(dataDir: string, journal: Journal): void {
  replaceDurably(join(dataDir, JOURNAL_FILE), JSON.stringify(journal))
}

/** Finishes a restore that was interrupted. Throws `conflict` while another process uses the data directory. */
export function finishRestore(dataDir: string): void {
  const lock = lockDataDir(dataDir)
  try {
    moveEntries(dataDir)
  } finally {
    lock.release()
  }
}

/** The caller holds the lock of the data directory. May run again after it was interrupted anywhere. */
export function moveEntries(dataDir: string): void {
  const journalFile = join(dataDir, JOURNAL_FILE)
  if (!existsSync(journalFile)) return
  const { staging, aside, old, fresh } = readJournal(journalFile)
  const [from, to] = [join(dataDir, staging), join(dataDir, aside)]
  if (!isThere(to)) mkdirSync(to, { mode: 0o700 })
  if (!lstatSync(to).isDirectory()) throw new AppError('conflict', `${to} is not a folder. Remove it and run the command again.`)
  // An entry that is aside already was moved before an interruption; one of the same name is new.
  for (const entry of old) if (isThere(join(dataDir, entry)) && !isThere(join(to, entry))) renameSync(join(dataDir, entry), join(to, entry))
  syncFolder(to)
  syncFolder(dataDir)
  for (const entry of fresh) if (isThere(join(from, entry))) renameSync(join(from, entry), join(dataDir, entry))
  syncFolder(dataDir)
  rmSync(from, { recursive: true, force: true })
  rmSync(journalFile)
  syncFolder(dataDir)
}

/** Whether an entry exists, also a link whose target is missing. */
export const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined

function readJournal(file: string): Journal {
  try {
    return v.parse(journalSchema, JSON.parse(readFileSync(file, 'utf8')))
  } catch (cause) {
    throw new AppError('unavailable', `${file}, the journal of a restore, cannot be read. Restore the backup again.`, { cause })
  }
}

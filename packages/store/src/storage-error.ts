/** Turns what SQLite throws into what callers of the store may see. */
import { AppError } from '@sluice/sdk'

const BUSY = 5
/** Long enough for room to be made, and a provider still comes back before it gives up. */
const RETRY_AFTER_SECS = 30

/** Primary result codes that say something about the disk or the file, and nothing about what was asked. */
const STORAGE_CODES: ReadonlySet<number> = new Set([
  3, // PERM
  BUSY,
  6, // LOCKED
  7, // NOMEM
  8, // READONLY
  10, // IOERR
  11, // CORRUPT
  13, // FULL
  14, // CANTOPEN
  15, // PROTOCOL
  26, // NOTADB
])

interface SqliteError extends Error {
  /** The extended result code; its low byte is the primary one. */
  readonly errcode: number
  readonly errstr: string
}

const isSqliteError = (error: unknown): error is SqliteError => error instanceof Error && 'errcode' in error && 'errstr' in error

/** SQLite's own words for a fault of the disk or the file; undefined for anything else. */
export const storageFault = (error: unknown): string | undefined =>
  isSqliteError(error) && STORAGE_CODES.has(error.errcode & 0xff) ? error.errstr : undefined

/** Of the codes above, those that no later attempt mends. */
const DAMAGE_CODES: ReadonlySet<number> = new Set([10, 11, 26])

/** SQLite's own words for a file that is damaged or cannot be read; undefined for anything else. */
export const damageOf = (error: unknown): string | undefined =>
  isSqliteError(error) && DAMAGE_CODES.has(error.errcode & 0xff) ? error.errstr : undefined

/** True for a file whose content is damaged. Other faults of a write, an I/O error among them, may pass. */
export const isDamaged = (error: unknown): boolean => isSqliteError(error) && [11, 26].includes(error.errcode & 0xff)

/** Another connection holds the lock that was wanted. */
export const isBusy = (error: unknown): boolean => isSqliteError(error) && (error.errcode & 0xff) === BUSY

/** `unavailable`, to be repeated later, for a fault of the disk or the file; anything else, a refusal or a bug, stays what it is. */
export function storageError(error: unknown, sentence: string): unknown {
  const reason = storageFault(error)
  return reason === undefined
    ? error
    : new AppError('unavailable', `${sentence}: ${reason}`, { cause: error, retryAfterSecs: RETRY_AFTER_SECS })
}

/** Translates SQLite's errors into errors for the callers of the store. */
import { AppError } from '@sluice/sdk'

const BUSY = 5
/** Long enough for an operator to make room, and short enough that a platform still retries its delivery. */
const RETRY_AFTER_SECS = 30

/** Primary result codes that concern the disk or the file rather than the statement. */
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

/** Returns SQLite's text for a fault of the disk or the file; undefined for any other error. */
export const storageFault = (error: unknown): string | undefined =>
  isSqliteError(error) && STORAGE_CODES.has(error.errcode & 0xff) ? error.errstr : undefined

/** The codes above after which no retry succeeds. */
const DAMAGE_CODES: ReadonlySet<number> = new Set([10, 11, 26])

/** Returns SQLite's text for a damaged or unreadable file; undefined for any other error. */
export const damageOf = (error: unknown): string | undefined =>
  isSqliteError(error) && DAMAGE_CODES.has(error.errcode & 0xff) ? error.errstr : undefined

/** Returns whether the content of the file is damaged. Other faults of a write, such as an I/O error, may pass. */
export const isDamaged = (error: unknown): boolean => isSqliteError(error) && [11, 26].includes(error.errcode & 0xff)

/** Returns whether another connection holds the lock. */
export const isBusy = (error: unknown): boolean => isSqliteError(error) && (error.errcode & 0xff) === BUSY

/** Returns a retryable `unavailable` for a fault of the disk or the file, and any other error unchanged. */
export function storageError(error: unknown, sentence: string): unknown {
  const reason = storageFault(error)
  return reason === undefined
    ? error
    : new AppError('unavailable', `${sentence}: ${reason}`, { cause: error, retryAfterSecs: RETRY_AFTER_SECS })
}

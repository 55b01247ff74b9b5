/** Translates errors of PostgreSQL and of its connections into errors for the callers of the store. */
import { AppError } from '@sluice/sdk'

/** Short enough that a platform still retries its delivery, and long enough for most failovers to end. */
const RETRY_AFTER_SECS = 10

/** Classes of SQLSTATE that concern the server or the connection rather than the statement. */
const FAULT_CLASSES: ReadonlySet<string> = new Set(['08', '53', '57', '58', 'XX'])
/** Codes of other classes with which the same transaction may succeed later: locks, time limits, and a server that became a standby. */
const PASSING: ReadonlySet<string> = new Set(['25006', '25P03', '25P04', '40001', '40P01', '55P03'])
/** The transaction lost against another one and can be repeated at once. */
const REPEATABLE: ReadonlySet<string> = new Set(['40001', '40P01'])

/** The SQLSTATE of an error of the server; undefined for any other error. */
export function sqlState(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return undefined
  return /^[0-9A-Z]{5}$/.test(error.code) && 'severity' in error ? error.code : undefined
}

/** The server answers, but it is not the one to work with: a standby, or one whose database went back. It may be, later. */
export class WrongServerError extends AppError {
  constructor(sentence: string) {
    super('unavailable', sentence, { retryAfterSecs: RETRY_AFTER_SECS, isPassing: true })
  }
}

/** Whether the connection itself failed, so that nothing is known about what was sent on it. */
export function isConnectionError(error: unknown): boolean {
  if (error instanceof WrongServerError) return true
  const state = sqlState(error)
  if (state !== undefined) return state.startsWith('57P') || state.startsWith('08') || state === '25P03' || state === '25P04'
  if (!(error instanceof Error)) return false
  return (
    'syscall' in error || 'errno' in error || /connection|client was closed|timeout expired|not queryable|certificate/i.test(error.message)
  )
}

export const isRepeatable = (error: unknown): boolean => REPEATABLE.has(sqlState(error) ?? '')

/** Returns the cause of a fault of the server or the connection as a sentence; undefined for any other error. */
export function faultOf(error: unknown): string | undefined {
  const state = sqlState(error)
  const isFault = state === undefined ? isConnectionError(error) : FAULT_CLASSES.has(state.slice(0, 2)) || PASSING.has(state)
  return isFault ? (error instanceof Error ? error.message : String(error)) : undefined
}

/** Returns a retryable `unavailable` for a fault of the server or the connection, and any other error unchanged. */
export function storeError(error: unknown, sentence: string): unknown {
  if (error instanceof AppError) return error
  const reason = faultOf(error)
  return reason === undefined ? error : awayError(`${sentence}: ${reason}`, error)
}

/** A retryable `unavailable`: the server or the connection to it is at fault. */
export const awayError = (sentence: string, cause?: unknown): AppError =>
  new AppError('unavailable', sentence, { ...(cause !== undefined && { cause }), retryAfterSecs: RETRY_AFTER_SECS, isPassing: true })

export const closedError = (): AppError => new AppError('unavailable', 'The store is closed.')

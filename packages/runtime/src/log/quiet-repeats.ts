/** Logs a warning that repeats while the database cannot be reached once a minute, so that an outage does not fill the log. */
import { AppError, type Clock, type LogFields, type Logger } from '@sluice/sdk'

const EVERY_MS = 60_000
/** Messages are constants of the sources, so there are few. */
const MESSAGES_MAX = 100

/** Repetitions of a warning about what is unavailable go to the level `debug`. Everything else is logged as it is. */
export function quietRepeats(log: Logger, clock: Pick<Clock, 'nowMs'>): Logger {
  const loggedAtMs = new Map<string, number>()
  const isRepeated = (message: string, fields: LogFields | undefined): boolean => {
    if (!(fields?.error instanceof AppError && fields.error.code === 'unavailable')) return false
    const nowMs = clock.nowMs()
    const lastMs = loggedAtMs.get(message)
    if (lastMs !== undefined && Math.abs(nowMs - lastMs) < EVERY_MS) return true
    if (loggedAtMs.size >= MESSAGES_MAX) loggedAtMs.clear()
    loggedAtMs.set(message, nowMs)
    return false
  }
  const warn: Logger['warn'] = (message, fields) => (isRepeated(message, fields) ? log.debug(message, fields) : log.warn(message, fields))
  const { debug, info, error } = log
  return { debug, info, warn, error }
}

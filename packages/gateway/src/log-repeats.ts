/** Keeps one message that repeats without end from filling the disk: so many a minute are written, the rest are counted. */
import { BoundedMap } from '@sluice/sdk'

const REPEATS_MAX = 20
const WINDOW_MS = 60_000
const MESSAGES_MAX = 256
/** Longer ones are not remembered, and so never too many. */
const LINE_CHARS_MAX = 1024

export interface Verdict {
  /** The minute's quota of this message is used up. */
  readonly isTooMany: boolean
  /** How many were left out before this one, in the minute that has ended. */
  readonly dropped: number
}

/** Judges each message by its whole text. What is left out is told with the next one of its kind that is written. */
export function createRepeatGuard(): (line: string, atMs: number) => Verdict {
  const seen = new BoundedMap<string, { sinceMs: number; count: number }>(MESSAGES_MAX)
  return (line, atMs) => {
    if (line.length > LINE_CHARS_MAX) return { isTooMany: false, dropped: 0 }
    const known = seen.get(line)
    if (!known || atMs - known.sinceMs >= WINDOW_MS) {
      // Deleted first: a replaced key would keep its old age, and go before those that are silent.
      seen.delete(line)
      seen.set(line, { sinceMs: atMs, count: 1 })
      return { isTooMany: false, dropped: Math.max(0, (known?.count ?? 0) - REPEATS_MAX) }
    }
    known.count += 1
    return { isTooMany: known.count > REPEATS_MAX, dropped: 0 }
  }
}

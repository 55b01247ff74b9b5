/** Keeps a message that repeats without end from filling the disk: a limited number a minute is written, the rest is counted. */
import { createHash } from 'node:crypto'
import { BoundedMap } from '@sluice/kit'

const WINDOW_MS = 60_000
const MESSAGES_MAX = 256
/** Longer lines are remembered by their digest, so that the memory they take stays bounded. */
const LINE_CHARS_MAX = 1024

export interface Verdict {
  /** The minute's quota of this message is used up. */
  readonly isTooMany: boolean
  /** How many were left out before this one, in the minute that has ended. */
  readonly dropped: number
}

/** Lets `linesMax` lines of one text a minute pass. The next one that passes after that minute tells how many were left out. */
export function createRepeatGuard(linesMax: number): (line: string, atMs: number) => Verdict {
  const seen = new BoundedMap<string, { sinceMs: number; count: number }>(MESSAGES_MAX)
  return (text, atMs) => {
    const line = text.length > LINE_CHARS_MAX ? createHash('sha256').update(text).digest('base64') : text
    const known = seen.get(line)
    if (!known || atMs - known.sinceMs >= WINDOW_MS) {
      // Deleted first: a replaced key would keep its old age, and go before those that are silent.
      seen.delete(line)
      seen.set(line, { sinceMs: atMs, count: 1 })
      return { isTooMany: false, dropped: Math.max(0, (known?.count ?? 0) - linesMax) }
    }
    known.count += 1
    return { isTooMany: known.count > linesMax, dropped: 0 }
  }
}

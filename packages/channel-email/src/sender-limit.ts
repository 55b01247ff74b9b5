/** Bounds how many mails of one sender are read in an hour, so that two programs that answer each other soon stop. */
import { BoundedMap } from '@sluice/kit'

const HOUR_MS = 3_600_000
export const SENDERS_MAX = 1000

interface Hour {
  readonly sinceMs: number
  readonly count: number
}

export class SenderLimit {
  readonly #max: number
  readonly #hours = new BoundedMap<string, Hour>(SENDERS_MAX)

  /** `max` 0 sets no limit. */
  constructor(max: number) {
    this.#max = max
  }

  /** Counts a mail. Returns `first` for the first one beyond the limit in this hour. */
  count(sender: string, nowMs: number): 'within' | 'first' | 'beyond' {
    if (this.#max === 0) return 'within'
    const known = this.#hours.get(sender)
    const isCurrent = known !== undefined && nowMs >= known.sinceMs && nowMs - known.sinceMs < HOUR_MS
    const hour = isCurrent ? { ...known, count: known.count + 1 } : { sinceMs: nowMs, count: 1 }
    this.#hours.set(sender, hour)
    if (hour.count <= this.#max) return 'within'
    return hour.count === this.#max + 1 ? 'first' : 'beyond'
  }
}

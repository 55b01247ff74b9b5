/** Bounds how many mails of one sender are read in an hour, so that two programs that answer each other soon stop. */
import { BoundedMap } from '@sluice/kit'
import { members } from '@sluice/kit/foreign-json'
import type { KeyValue } from '@sluice/sdk'

const HOUR_MS = 3_600_000
export const SENDERS_MAX = 1000
const KEY = 'mails-per-hour'

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

  /** Reads the counts of an earlier run. */
  async load(keyValue: KeyValue): Promise<void> {
    for (const [sender, stored] of Object.entries(members(await keyValue.get(KEY))).slice(-SENDERS_MAX)) {
      const { sinceMs, count } = members(stored)
      if (typeof sinceMs === 'number' && typeof count === 'number') this.#hours.set(sender, { sinceMs, count })
    }
  }

  /** Stores the counts of this hour. */
  async save(keyValue: KeyValue, nowMs: number): Promise<void> {
    if (this.#max === 0) return
    const current = [...this.#hours.entries()].filter(([, hour]) => isCurrent(hour, nowMs))
    await keyValue.set(KEY, Object.fromEntries(current))
  }

  /** Counts a mail. Returns `first` for the first one beyond the limit in this hour. */
  count(sender: string, nowMs: number): 'within' | 'first' | 'beyond' {
    if (this.#max === 0) return 'within'
    const known = this.#hours.get(sender)
    const hour = known && isCurrent(known, nowMs) ? { ...known, count: known.count + 1 } : { sinceMs: nowMs, count: 1 }
    this.#hours.set(sender, hour)
    if (hour.count <= this.#max) return 'within'
    return hour.count === this.#max + 1 ? 'first' : 'beyond'
  }
}

const isCurrent = ({ sinceMs }: Hour, nowMs: number): boolean => nowMs >= sinceMs && nowMs - sinceMs < HOUR_MS

/** Calls per minute and key over a true sliding window (§8), in amortised constant time per call. */
import type { Clock } from '@sluice/sdk'
import { TimeRing } from './time-ring.ts'

export interface RateLimiterOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** Calls per key within any 60 s; 0: no limit. */
  readonly limit: number
  /** Keys remembered. */
  readonly keysMax: number
}

export interface RateLimiter {
  /** 0, and the call counts; or the whole seconds after which the next call may, and this one does not count. */
  take(key: string): number
  readonly size: number
}

const WINDOW_MS = 60_000

/** A key below its limit is linked between those used before and after it; one at its limit waits in a bucket. */
interface Entry {
  readonly key: string
  readonly calls: TimeRing
  before: Entry | undefined
  after: Entry | undefined
  isLinked: boolean
  isFiled: boolean
}

/**
 * A full table forgets the least recently used key, but none that is at its limit while another is not: else a caller
 * over its limit could free itself by coming under many names.
 */
export function createRateLimiter({ clock, limit, keysMax }: RateLimiterOptions): RateLimiter {
  const entries = new Map<string, Entry>()
  /** Keys that reached their limit, by the second in which they leave it. */
  const buckets = new Map<number, Entry[]>()
  let oldest: Entry | undefined
  let newest: Entry | undefined
  let drainedMs = Number.NEGATIVE_INFINITY

  const unlink = (entry: Entry): void => {
    if (!entry.isLinked) return
    if (entry.before) entry.before.after = entry.after
    else oldest = entry.after
    if (entry.after) entry.after.before = entry.before
    else newest = entry.before
    entry.before = entry.after = undefined
    entry.isLinked = false
  }

  const linkNewest = (entry: Entry): void => {
    unlink(entry)
    entry.before = newest
    if (newest) newest.after = entry
    else oldest = entry
    newest = entry
    entry.isLinked = true
  }

  /** An entry is in one bucket at most; if it is full again when that bucket is due, it moves on then. */
  const file = (entry: Entry): void => {
    unlink(entry)
    if (entry.isFiled) return
    const second = Math.ceil((entry.calls.oldest + WINDOW_MS) / 1000)
    const bucket = buckets.get(second)
    if (bucket) bucket.push(entry)
    else buckets.set(second, [entry])
    entry.isFiled = true
  }

  /** Empties the buckets that are due, and links what is below its limit by now; once a second is enough. */
  const drain = (nowMs: number): void => {
    if (nowMs < drainedMs + 1000) return
    drainedMs = nowMs
    for (const [second, bucket] of buckets) {
      if (second * 1000 > nowMs) continue
      buckets.delete(second)
      for (const entry of bucket) {
        entry.isFiled = false
        entry.calls.dropUntil(nowMs - WINDOW_MS)
        if (entries.get(entry.key) !== entry || entry.isLinked) continue
        if (entry.calls.isFull) file(entry)
        else linkNewest(entry)
      }
    }
  }

  /** With every key at its limit, the one that leaves it first. */
  const firstToLeave = (): Entry | undefined => {
    for (const second of [...buckets.keys()].sort((a, b) => a - b)) {
      const bucket = buckets.get(second) ?? []
      for (let entry = bucket.pop(); entry; entry = bucket.pop()) {
        if (entries.get(entry.key) === entry) return entry
      }
      buckets.delete(second)
    }
    return undefined
  }

  const makeRoom = (nowMs: number): void => {
    if (entries.size < keysMax) return
    drain(nowMs)
    const victim = oldest ?? firstToLeave()
    if (!victim) return
    unlink(victim)
    entries.delete(victim.key)
  }

  const create = (key: string, nowMs: number): Entry => {
    makeRoom(nowMs)
    const entry: Entry = { key, calls: new TimeRing(limit), before: undefined, after: undefined, isLinked: false, isFiled: false }
    entries.set(key, entry)
    return entry
  }

  return {
    get size() {
      return entries.size
    },
    take(key) {
      if (limit === 0) return 0
      const nowMs = clock.monotonicMs()
      const entry = entries.get(key) ?? create(key, nowMs)
      entry.calls.dropUntil(nowMs - WINDOW_MS)
      if (entry.calls.isFull) return Math.max(1, Math.ceil((entry.calls.oldest + WINDOW_MS - nowMs) / 1000))
      entry.calls.push(nowMs)
      if (entry.calls.isFull) file(entry)
      else linkNewest(entry)
      return 0
    },
  }
}

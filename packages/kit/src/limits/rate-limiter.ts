/** Limits the calls of each key within any 60 seconds, in amortised constant time per call. */
import type { Clock, RateLimitOptions } from '@sluice/sdk'

export interface RateLimiterOptions extends RateLimitOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>
}

const WINDOW_MS = 60_000
const DRAIN_EVERY_MS = 1000

/** A key below its limit is in the list of keys in order of use; a key at its limit is in a bucket. */
interface Entry {
  readonly key: string
  readonly calls: TimeRing
  previous: Entry | undefined
  next: Entry | undefined
  isListed: boolean
  isInBucket: boolean
}

/**
 * A full table forgets the least recently used key, but never a key at its limit while another is below its own: otherwise a
 * caller over its limit could free itself by calling under many names.
 */
export class RateLimiter {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #limit: number
  readonly #keysMax: number
  readonly #entries = new Map<string, Entry>()
  /** Keys that reached their limit, by the second in which they fall below it. */
  readonly #buckets = new Map<number, Entry[]>()
  #oldest: Entry | undefined
  #newest: Entry | undefined
  #drainedMs = Number.NEGATIVE_INFINITY

  constructor({ clock, limit, keysMax }: RateLimiterOptions) {
    this.#clock = clock
    this.#limit = limit
    this.#keysMax = keysMax
  }

  /** The number of keys that are remembered now. */
  get size(): number {
    return this.#entries.size
  }

  /** Returns 0 and counts the call, or returns the whole seconds until the next call is possible and counts nothing. */
  take(key: string): number {
    if (this.#limit === 0) return 0
    const nowMs = this.#clock.monotonicMs()
    const entry = this.#entries.get(key) ?? this.#create(key, nowMs)
    const { calls } = entry
    calls.dropUntil(nowMs - WINDOW_MS)
    if (calls.isFull) return Math.max(1, Math.ceil((calls.oldest + WINDOW_MS - nowMs) / 1000))
    calls.push(nowMs)
    if (calls.isFull) this.#putInBucket(entry)
    else this.#listAsNewest(entry)
    return 0
  }

  #create(key: string, nowMs: number): Entry {
    if (this.#entries.size >= this.#keysMax) this.#makeRoom(nowMs)
    const entry: Entry = {
      key,
      calls: new TimeRing(this.#limit),
      previous: undefined,
      next: undefined,
      isListed: false,
      isInBucket: false,
    }
    this.#entries.set(key, entry)
    return entry
  }

  #makeRoom(nowMs: number): void {
    this.#drainBuckets(nowMs)
    const victim = this.#oldest ?? this.#firstBelowLimit()
    if (!victim) return
    this.#unlist(victim)
    this.#entries.delete(victim.key)
  }

  /** Lists the entries of due buckets that are below their limit by now; at most once a second. */
  #drainBuckets(nowMs: number): void {
    if (nowMs < this.#drainedMs + DRAIN_EVERY_MS) return
    this.#drainedMs = nowMs
    for (const [second, bucket] of this.#buckets) {
      if (second * 1000 > nowMs) continue
      this.#buckets.delete(second)
      for (const entry of bucket) {
        entry.isInBucket = false
        entry.calls.dropUntil(nowMs - WINDOW_MS)
        if (this.#entries.get(entry.key) !== entry || entry.isListed) continue
        if (entry.calls.isFull) this.#putInBucket(entry)
        else this.#listAsNewest(entry)
      }
    }
  }

  /** The entry that falls below its limit first, if all are at their limit. */
  #firstBelowLimit(): Entry | undefined {
    for (const second of [...this.#buckets.keys()].sort((a, b) => a - b)) {
      const bucket = this.#buckets.get(second) ?? []
      for (let entry = bucket.pop(); entry; entry = bucket.pop()) {
        if (this.#entries.get(entry.key) === entry) return entry
      }
      this.#buckets.delete(second)
    }
    return undefined
  }

  /** An entry is in at most one bucket; if it is at its limit again when that bucket is due, it moves to a later one. */
  #putInBucket(entry: Entry): void {
    this.#unlist(entry)
    if (entry.isInBucket) return
    const second = Math.ceil((entry.calls.oldest + WINDOW_MS) / 1000)
    const bucket = this.#buckets.get(second)
    if (bucket) bucket.push(entry)
    else this.#buckets.set(second, [entry])
    entry.isInBucket = true
  }

  #listAsNewest(entry: Entry): void {
    this.#unlist(entry)
    entry.previous = this.#newest
    if (this.#newest) this.#newest.next = entry
    else this.#oldest = entry
    this.#newest = entry
    entry.isListed = true
  }

  #unlist(entry: Entry): void {
    if (!entry.isListed) return
    if (entry.previous) entry.previous.next = entry.next
    else this.#oldest = entry.next
    if (entry.next) entry.next.previous = entry.previous
    else this.#newest = entry.previous
    entry.previous = undefined
    entry.next = undefined
    entry.isListed = false
  }
}

/** Times in ascending order, in a ring buffer that grows up to a bound. */
export class TimeRing {
  readonly #max: number
  #times: Float64Array
  #head = 0
  #count = 0

  constructor(max: number) {
    this.#max = max
    this.#times = new Float64Array(Math.min(max, 4))
  }

  get size(): number {
    return this.#count
  }

  get isFull(): boolean {
    return this.#count >= this.#max
  }

  /** 0 if the ring is empty. */
  get oldest(): number {
    return this.#count === 0 ? 0 : (this.#times[this.#head] ?? 0)
  }

  /** Removes every time at or before this one. */
  dropUntil(time: number): void {
    while (this.#count > 0 && this.oldest <= time) {
      this.#head = (this.#head + 1) % this.#times.length
      this.#count -= 1
    }
  }

  /** The ring must not be full. */
  push(time: number): void {
    if (this.#count === this.#times.length) this.#grow()
    this.#times[(this.#head + this.#count) % this.#times.length] = time
    this.#count += 1
  }

  #grow(): void {
    const grown = new Float64Array(Math.min(this.#max, this.#times.length * 2))
    grown.set(this.#times.subarray(this.#head))
    grown.set(this.#times.subarray(0, this.#head), this.#times.length - this.#head)
    this.#times = grown
    this.#head = 0
  }
}

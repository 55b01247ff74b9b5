/**
 * Which idempotency keys are taken (§2.2). The truth about claims is in memory, so a claim touches no disk; what outlives
 * the process stands in the turns themselves: an unfinished turn holds its key, a turn done within the window has used it
 * up. Keys are kept as hashes, so that a long one costs no more than a short one.
 */
import { BoundedMap, type Claim, type IdempotencyKey, sha256Hex } from '@sluice/sdk'

export interface KeyLimits {
  readonly ttlMs: number
  readonly keysMax: number
}

/** What a restart finds, oldest first. */
export interface KnownKeys {
  readonly queued: readonly string[]
  readonly done: readonly { readonly key: string; readonly endedAtMs: number }[]
}

/** Any two different keys have different hashes: the length keeps scope and key apart, UTF-16 keeps broken text apart. */
export const hashKey = ({ scope, key }: IdempotencyKey): string => sha256Hex(Buffer.from(`${scope.length}:${scope}${key}`, 'utf16le'))

/** A key in flight does not expire, since its turn still runs; a key that is done does, `ttlMs` after the turn's end. */
export class KeyTable {
  readonly #load: (limits: KeyLimits) => KnownKeys
  #keysMax = 0
  /** True: a durable turn holds the key, and only its end gives it back. */
  #inFlight = new BoundedMap<string, boolean>(1)
  /** When the turn ended. */
  #done = new BoundedMap<string, number>(1)

  /** `load` reads what the disk knows; called once, at the first claim. */
  constructor(load: (limits: KeyLimits) => KnownKeys) {
    this.#load = load
  }

  claim(key: string, limits: KeyLimits, nowMs: number): Claim {
    this.#prepare(limits)
    if (this.#inFlight.has(key)) return 'in_flight'
    const endedAtMs = this.#done.get(key)
    if (endedAtMs !== undefined && nowMs - endedAtMs < limits.ttlMs) return 'done'
    this.#done.delete(key)
    this.#take(key, false)
    return 'claimed'
  }

  /** Gives back a claim that no durable turn holds. */
  release(key: string): void {
    if (this.#inFlight.get(key) === false) this.#inFlight.delete(key)
  }

  /** A durable turn holds the key from now on. */
  queued(key: string): void {
    if (!this.#isLoaded) return
    this.#done.delete(key)
    this.#take(key, true)
  }

  /** The turn that held the key is over; `doneAtMs` is undefined if it did not end well. */
  ended(key: string, doneAtMs: number | undefined): void {
    if (!this.#isLoaded) return
    this.#inFlight.delete(key)
    if (doneAtMs === undefined) return
    this.#done.delete(key)
    this.#makeRoom()
    this.#done.set(key, doneAtMs)
  }

  /** Before the first claim nothing has to be noted: `load` will find it on the disk. */
  get #isLoaded(): boolean {
    return this.#keysMax > 0
  }

  #prepare(limits: KeyLimits): void {
    if (limits.keysMax === this.#keysMax) return
    const known = this.#isLoaded ? undefined : this.#load(limits)
    this.#keysMax = limits.keysMax
    this.#inFlight = resized(this.#inFlight, limits.keysMax)
    this.#done = resized(this.#done, limits.keysMax)
    for (const { key, endedAtMs } of known?.done ?? []) this.ended(key, endedAtMs)
    for (const key of known?.queued ?? []) this.queued(key)
    while (this.#size > this.#keysMax) this.#dropOldest()
  }

  #take(key: string, isQueued: boolean): void {
    if (!this.#inFlight.has(key)) this.#makeRoom()
    this.#inFlight.set(key, isQueued)
  }

  get #size(): number {
    return this.#inFlight.size + this.#done.size
  }

  #makeRoom(): void {
    if (this.#size >= this.#keysMax) this.#dropOldest()
  }

  /** A key in flight goes only when there is no other: without it the same request would run twice at once. */
  #dropOldest(): void {
    const keys = this.#done.size > 0 ? this.#done : this.#inFlight
    const oldest = keys.oldest()
    if (oldest !== undefined) keys.delete(oldest)
  }
}

function resized<V>(keys: BoundedMap<string, V>, max: number): BoundedMap<string, V> {
  const copy = new BoundedMap<string, V>(max)
  for (const [key, value] of keys.entries()) copy.set(key, value)
  return copy
}

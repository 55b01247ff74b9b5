/**
 * Which idempotency keys are taken (§2.2). The truth about claims is in memory, so a claim touches no disk; what outlives
 * the process stands in the turns themselves: an unfinished turn holds its key, a turn done within the window has used it
 * up. Keys are kept as hashes, so that a long one costs no more than a short one.
 */
import { BoundedMap } from '@sluice/kit'
import { type Claim, type IdempotencyKey, sha256Hex } from '@sluice/sdk'

export interface KeyLimits {
  readonly ttlMs: number
  readonly keysMax: number
}

/** What a restart finds, oldest first. */
export interface KnownKeys {
  readonly queued: readonly { readonly key: string; readonly turnId: string }[]
  /** `turnId` is null where a procedure took the request. */
  readonly done: readonly { readonly key: string; readonly turnId: string | null; readonly endedAtMs: number }[]
}

interface InFlight {
  /** Null until the turn is known. */
  turnId: string | null
  /** True: a durable turn holds the key, and only the turn's end gives it back. */
  isQueued: boolean
}

/** Any two different keys have different hashes: the length keeps scope and key apart, UTF-16 keeps broken text apart. */
export const hashKey = ({ scope, key }: IdempotencyKey): string => sha256Hex(Buffer.from(`${scope.length}:${scope}${key}`, 'utf16le'))

/** A key in flight does not expire, since its turn still runs; a key that is done does, `ttlMs` after the turn's end. */
export class KeyTable {
  readonly #load: (limits: KeyLimits) => KnownKeys
  #keysMax = 0
  #inFlight = new BoundedMap<string, InFlight>(1)
  #done = new BoundedMap<string, { readonly turnId: string | null; readonly endedAtMs: number }>(1)

  /** `load` reads what the disk knows; called once, at the first claim. */
  constructor(load: (limits: KeyLimits) => KnownKeys) {
    this.#load = load
  }

  claim(key: string, limits: KeyLimits, nowMs: number): Claim {
    this.#prepare(limits)
    if (this.#inFlight.has(key)) return 'in_flight'
    const done = this.#done.get(key)
    if (done && nowMs - done.endedAtMs < limits.ttlMs) return 'done'
    this.#done.delete(key)
    this.#take(key, { turnId: null, isQueued: false })
    return 'claimed'
  }

  turnOf(key: string): string | undefined {
    return (this.#inFlight.get(key) ?? this.#done.get(key))?.turnId ?? undefined
  }

  /** Gives back a claim that no durable turn holds. */
  release(key: string): void {
    if (this.#inFlight.get(key)?.isQueued === false) this.#inFlight.delete(key)
  }

  /** A turn that is being kept is going to hold the key. */
  queueing(key: string, turnId: string): void {
    const claim = this.#inFlight.get(key)
    if (claim && !claim.isQueued) claim.turnId = turnId
  }

  /** A durable turn holds the key from now on. */
  queued(key: string, turnId: string): void {
    if (!this.#isLoaded) return
    this.#done.delete(key)
    this.#take(key, { turnId, isQueued: true })
  }

  /** The turn that held the key is over; `doneAtMs` is undefined if it did not end well. `turnId` is null for a procedure. */
  ended(key: string, turnId: string | null, doneAtMs: number | undefined): void {
    if (!this.#isLoaded) return
    this.#inFlight.delete(key)
    if (doneAtMs === undefined) return
    this.#done.delete(key)
    this.#makeRoom()
    this.#done.set(key, { turnId, endedAtMs: doneAtMs })
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
    for (const { key, turnId, endedAtMs } of known?.done ?? []) this.ended(key, turnId, endedAtMs)
    for (const { key, turnId } of known?.queued ?? []) this.queued(key, turnId)
    while (this.#size > this.#keysMax) this.#dropOldest()
  }

  #take(key: string, claim: InFlight): void {
    if (!this.#inFlight.has(key)) this.#makeRoom()
    this.#inFlight.set(key, claim)
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

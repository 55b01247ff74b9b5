/**
 * The idempotency keys in use; see docs/contract.md#idempotency. Claims live in memory, so a claim needs no disk access. After a
 * restart the table is loaded from the turns: an unfinished turn holds its key, and a turn that was done within the window has
 * used it up. Keys are stored as hashes, so that a long key costs no more than a short one.
 */
import { BoundedMap } from '@sluice/kit'
import type { Claim } from '@sluice/sdk'

/** The configured limits for idempotency keys. */
export interface KeyLimits {
  readonly ttlMs: number
  readonly keysMax: number
}

/** The stored keys that a restart finds, oldest first. */
export interface KnownKeys {
  readonly queued: readonly { readonly key: string; readonly turnId: string }[]
  /** `turnId` is null for a request that a procedure handled. */
  readonly done: readonly { readonly key: string; readonly turnId: string | null; readonly endedAtMs: number }[]
}

interface InFlight {
  /** Null until the turn is known. */
  turnId: string | null
  /** True when a durable turn holds the key; then only the end of that turn releases it. */
  isQueued: boolean
}

/** A key in flight does not expire, because its turn still runs. A key that is done expires `ttlMs` after the end of its turn. */
export class KeyTable {
  readonly #load: (limits: KeyLimits) => KnownKeys
  #keysMax = 0
  #isStale = true
  #inFlight = new BoundedMap<string, InFlight>(1)
  #done = new BoundedMap<string, { readonly turnId: string | null; readonly endedAtMs: number }>(1)

  /** `load` reads the stored keys. It is called at the first claim, and at the first one after each `refresh`. */
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

  /** Releases a claim that no durable turn holds. */
  release(key: string): void {
    if (this.#inFlight.get(key)?.isQueued === false) this.#inFlight.delete(key)
  }

  /** Notes the turn that will hold the key once it is stored. */
  queueing(key: string, turnId: string): void {
    const claim = this.#inFlight.get(key)
    if (claim && !claim.isQueued) claim.turnId = turnId
  }

  /** Notes that a durable turn holds the key. */
  queued(key: string, turnId: string): void {
    if (!this.#isLoaded) return
    this.#done.delete(key)
    this.#take(key, { turnId, isQueued: true })
  }

  /** Notes the end of the turn that held the key. `doneAtMs` is undefined when the turn failed; `turnId` is null for a procedure. */
  ended(key: string, turnId: string | null, doneAtMs: number | undefined): void {
    if (!this.#isLoaded) return
    this.#inFlight.delete(key)
    if (doneAtMs === undefined) return
    this.#done.delete(key)
    this.#makeRoom()
    this.#done.set(key, { turnId, endedAtMs: doneAtMs })
  }

  /** Takes over what the store has of one key. `ended` is the latest end within the window. */
  learn(key: string, stored: { readonly queued: string | undefined; readonly ended: KnownKeys['done'][number] | undefined }): void {
    if (stored.queued === undefined && this.#inFlight.get(key)?.isQueued) this.#inFlight.delete(key)
    const known = this.#done.get(key)
    if (stored.ended && !this.#inFlight.has(key) && !(known && known.endedAtMs >= stored.ended.endedAtMs))
      this.ended(key, stored.ended.turnId, stored.ended.endedAtMs)
    if (stored.queued !== undefined) this.queued(key, stored.queued)
  }

  /** Reads the stored keys again before the next claim, because another process has written. */
  refresh(): void {
    this.#isStale = true
  }

  /** False before the first claim. Until then no change is recorded here, because `load` reads the keys from the disk. */
  get #isLoaded(): boolean {
    return this.#keysMax > 0
  }

  #prepare(limits: KeyLimits): void {
    if (limits.keysMax !== this.#keysMax) {
      this.#keysMax = limits.keysMax
      this.#inFlight = resized(this.#inFlight, limits.keysMax)
      this.#done = resized(this.#done, limits.keysMax)
    }
    if (this.#isStale) this.#merge(this.#load(limits))
    this.#isStale = false
    while (this.#size > this.#keysMax) this.#dropOldest()
  }

  /** Takes over the stored keys. A queued turn that is not among them has ended in another process. */
  #merge({ queued, done }: KnownKeys): void {
    const stored = new Set(queued.map(({ key }) => key))
    const over = [...this.#inFlight.entries()].filter(([key, { isQueued }]) => isQueued && !stored.has(key))
    for (const [key] of over) this.#inFlight.delete(key)
    for (const { key, turnId, endedAtMs } of done) {
      const known = this.#done.get(key)
      // A key in flight was used again since.
      if (!this.#inFlight.has(key) && !(known && known.endedAtMs >= endedAtMs)) this.ended(key, turnId, endedAtMs)
    }
    for (const { key, turnId } of queued) this.queued(key, turnId)
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

  /** Drops a key in flight only when all keys are in flight: without its key, the same request could run twice at once. */
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

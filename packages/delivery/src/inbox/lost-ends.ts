/** Keeps an outage of the store, which then records no end of an attempt, from using up attempts and from asking a model again and again. */
import { BoundedMap, type JobOutcome } from '@sluice/kit'
import { AppError, type Clock, type OwnedStore } from '@sluice/sdk'
import { retryDelayMs } from '../outbox/retry-delay.ts'

const MESSAGES_MAX = 10_000
/** The longest wait, so that a message is answered soon after the store takes ends again. Until then each attempt may cost a request. */
const LOST_MS_MAX = 60_000

export class LostEnds {
  readonly #clock: Clock
  /** The messages whose attempt has begun, and whether it asks a model for an answer that is not counted as lost yet. */
  readonly #begun = new BoundedMap<number, boolean>(MESSAGES_MAX)
  /** How many answers of a message were lost. */
  readonly #lost = new BoundedMap<number, number>(MESSAGES_MAX)
  /** The messages whose last attempt ended without a record, and when they may run again. */
  readonly #unended = new BoundedMap<number, number>(MESSAGES_MAX)

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Records the end that is due of the last attempt, which does not count. Resolves to undefined if the next attempt may begin now. */
  async settle(owned: OwnedStore, number: number): Promise<JobOutcome | undefined> {
    this.#begun.delete(number)
    const retryAtMs = this.#unended.get(number)
    if (retryAtMs === undefined) return undefined
    await owned.inbox.release(number)
    this.#unended.delete(number)
    return retryAtMs > this.#clock.nowMs() ? { retryAtMs } : undefined
  }

  begun(number: number, asksModel: boolean): void {
    this.#begun.set(number, asksModel)
  }

  /** Returns how long the message waits after an attempt that rejected with `error`: longer after each answer that the store did not take. */
  delayMs(number: number, error: unknown): number {
    if (!isOfStore(error)) return 0
    const lost = (this.#lost.get(number) ?? 0) + (this.#begun.get(number) ? 1 : 0)
    if (lost === 0) return 0
    this.#lost.set(number, lost)
    this.#begun.set(number, false)
    return Math.min(retryDelayMs(lost), LOST_MS_MAX)
  }

  /** Remembers that the store did not record the end of an attempt; `error` is what the attempt rejected with. */
  unended(number: number, error: unknown): void {
    if (isOfStore(error) && this.#begun.has(number)) this.#unended.set(number, this.#clock.nowMs() + this.delayMs(number, error))
  }

  /** Forgets a message that needs no more work here. */
  forget(number: number): void {
    for (const numbers of [this.#begun, this.#lost, this.#unended]) numbers.delete(number)
  }
}

/** An agent that is not configured is `unavailable` as well, but says nothing about when it is back. */
const isOfStore = (error: unknown): boolean =>
  error instanceof AppError && error.code === 'unavailable' && (error.isPassing || error.retryAfterSecs !== undefined)

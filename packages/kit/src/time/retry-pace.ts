/** The delays between attempts to reach a platform: short during a short outage, rare during a long one, never in step. */
import { AppError, type Clock } from '@sluice/sdk'
import { askedDelayMs } from './backoff.ts'

/** Attempts stay this frequent for `SHORT_OUTAGE_MS`, so that a short outage ends within seconds of the platform's return. */
const FREQUENT_MS = 4000
const SHORT_OUTAGE_MS = 35_000
/** In a longer outage, the delay is this part of the time that has passed since its beginning. */
const SHARE_OF_OUTAGE = 1 / 3
/** Together with `FIXED_SHARE` this keeps attempts below 300 a day. */
const LONGEST_MS = 480_000
/** The part of each delay that is not random. The first delay is random as a whole. */
const FIXED_SHARE = 0.75
/** The delay after a refusal, which only the operator can resolve. */
export const REFUSED_MS = 900_000
/** The longest delay that a platform can ask for. */
const ASKED_MS_MAX = 86_400_000
/** A delay that the platform asked for is prolonged by a random part of this share, and of at most `ASKED_JITTER_MS_MAX`. */
const ASKED_JITTER_SHARE = 0.1
const ASKED_JITTER_MS_MAX = 30_000

export interface RetryPaceOptions {
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** The longest delay that the platform did not ask for, in milliseconds; 480,000 unless given. */
  readonly longestMs?: number
  /** Returns a number from 0 up to 1; `Math.random` unless given. */
  readonly random?: (() => number) | undefined
}

export class RetryPace {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #longestMs: number
  readonly #random: () => number
  #failures = 0
  #sinceMs = 0

  constructor({ clock, longestMs = LONGEST_MS, random = Math.random }: RetryPaceOptions) {
    this.#clock = clock
    this.#longestMs = longestMs
    this.#random = random
  }

  /** The failures since the last `reset`. */
  get failures(): number {
    return this.#failures
  }

  /** Begins again with the first delay. Call it after a success. */
  reset(): void {
    this.#failures = 0
  }

  /**
   * Counts a failure, and returns the milliseconds to wait before the next attempt. They are never fewer than the error's
   * `retryAfterSecs` asks for, and 11 to 15 minutes after an error that only the operator can resolve.
   */
  failed(error?: unknown): number {
    const nowMs = this.#clock.monotonicMs()
    if (this.#failures === 0) this.#sinceMs = nowMs
    this.#failures += 1
    const askedMs = askedDelayMs(error, ASKED_MS_MAX)
    const jitterMs = Math.min(askedMs * ASKED_JITTER_SHARE, ASKED_JITTER_MS_MAX) * this.#random()
    const ownMs = isRefusal(error) ? REFUSED_MS * this.#jitter() : this.#ownDelayMs(nowMs - this.#sinceMs)
    return Math.round(Math.max(ownMs, askedMs + jitterMs))
  }

  #ownDelayMs(outageMs: number): number {
    if (this.#failures === 1) return Math.min(1000, this.#longestMs) * this.#random()
    const frequentMs = Math.min(FREQUENT_MS, 1000 * 2 ** (this.#failures - 1))
    const grownMs = outageMs > SHORT_OUTAGE_MS ? outageMs * SHARE_OF_OUTAGE : frequentMs
    return Math.min(grownMs, this.#longestMs) * this.#jitter()
  }

  #jitter(): number {
    return FIXED_SHARE + (1 - FIXED_SHARE) * this.#random()
  }
}

/** Whether an error says that the platform refuses the credentials or the set-up, so that only the operator can help. */
export const isRefusal = (error: unknown): boolean =>
  error instanceof AppError && (error.code === 'forbidden' || error.code === 'unauthorized')

export interface RetryOptions extends RetryPaceOptions {
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Called after each failure with the number of failures so far. Throws to end the retries with that error. */
  onFailure(error: unknown, failures: number): void
}

/** Runs `task` until it resolves, with the delays of `RetryPace`. Returns undefined if `signal` aborts first. */
export async function retry<Result>(task: () => Promise<Result>, options: RetryOptions): Promise<Result | undefined> {
  const { clock, signal, onFailure } = options
  const pace = new RetryPace(options)
  while (!signal.aborted) {
    try {
      return await task()
    } catch (error) {
      if (signal.aborted) return undefined
      const delayMs = pace.failed(error)
      onFailure(error, pace.failures)
      await clock.sleep(delayMs, signal)
    }
  }
  return undefined
}

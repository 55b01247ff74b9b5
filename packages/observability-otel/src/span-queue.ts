/**
 * What stands between the daemon's work and the collector: a bounded queue that takes observations without waiting, and
 * hands them on in batches, one at a time. What it cannot keep or send is dropped and counted.
 */
import type { Clock, Logger, Observation } from '@sluice/sdk'
import { errorText } from '@sluice/sdk'
import type { Collector } from './collector.ts'
import { isSpanned, type Spanned } from './spanned.ts'

/** Spans that wait; at about half a kilobyte each. */
export const QUEUE_MAX = 4096
export const BATCH_MAX = 512
/** How long fewer than a batch wait for more. */
export const DELAY_MS = 1000
/** One batch, with the exporter's own repeats; what takes longer is dropped. */
export const SEND_MS_MAX = 12_000
/** What the end of the daemon may take for what is left. */
export const CLOSE_MS_MAX = 2000
/** Drops are told at most so often, and when the collector is back. */
export const NOTICE_MS = 60_000

export interface SpanQueueOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly open: () => Promise<Collector>
}

export class SpanQueue {
  readonly #options: SpanQueueOptions
  readonly #closing = new AbortController()
  #queue: Spanned[] = []
  /** Handed to the collector, which has not answered yet. */
  #underWay = 0
  #opening: Promise<void> | undefined
  #collector: Collector | undefined
  /** Sends what is queued until nothing is left; undefined while nothing is. */
  #sending: Promise<void> | undefined
  /** Ends the wait for a whole batch. */
  #full = new AbortController()
  #isOver = false
  /** It did not take the last batch. */
  #isDown = false
  #dropped = 0
  #lastReason = ''
  #toldAtMs = Number.NEGATIVE_INFINITY

  constructor(options: SpanQueueOptions) {
    this.#options = options
  }

  /** Never throws and never waits. What is no span is not kept. */
  add(observation: Observation): void {
    if (!isSpanned(observation) || this.#closing.signal.aborted) return
    if (this.#queue.length >= QUEUE_MAX) {
      this.#drop(1, 'the collector is slower than the spans come')
      return
    }
    this.#queue.push(observation)
    if (this.#queue.length === BATCH_MAX) this.#full.abort()
    this.#sending ??= this.#send()
  }

  /** Sends what is left, for at most `CLOSE_MS_MAX`. Idempotent. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#closing.abort()
    this.#full.abort()
    const enough = new AbortController()
    await Promise.race([this.#sending, this.#options.clock.sleep(CLOSE_MS_MAX, enough.signal)])
    enough.abort()
    this.#isOver = true
    const left = this.#queue.splice(0).length + this.#underWay
    if (left > 0) this.#drop(left, 'the daemon stopped before they were sent')
    if (this.#dropped > 0) this.#tell()
    this.#collector?.close()
  }

  async #send(): Promise<void> {
    // A moment later, so that whoever observes is through with it.
    await Promise.resolve()
    while (this.#queue.length > 0) {
      await this.#wholeBatch()
      const batch = this.#queue.splice(0, BATCH_MAX)
      this.#underWay = batch.length
      const problem = await this.#problemOf(batch)
      if (this.#isOver) return
      this.#underWay = 0
      const isBack = this.#isDown && problem === undefined
      this.#isDown = problem !== undefined
      if (problem !== undefined) this.#drop(batch.length, problem)
      else if (this.#dropped > 0 && (isBack || this.#isTimeToTell())) this.#tell()
    }
    this.#sending = undefined
  }

  async #wholeBatch(): Promise<void> {
    if (this.#queue.length >= BATCH_MAX || this.#closing.signal.aborted) return
    this.#full = new AbortController()
    await this.#options.clock.sleep(DELAY_MS, this.#full.signal)
  }

  /** Why the batch was not taken, within its time; undefined once it was. */
  async #problemOf(batch: readonly Spanned[]): Promise<string | undefined> {
    const enough = new AbortController()
    const late = this.#options.clock.sleep(SEND_MS_MAX, enough.signal).then(() => {
      if (enough.signal.aborted) return undefined
      this.#collector?.close()
      return `no answer within ${SEND_MS_MAX / 1000} s`
    })
    try {
      return await Promise.race([this.#deliver(batch), late])
    } catch (error) {
      return errorText(error)
    } finally {
      enough.abort()
    }
  }

  async #deliver(batch: readonly Spanned[]): Promise<undefined> {
    this.#opening ??= this.#open()
    await this.#opening
    await this.#collector?.send(batch)
  }

  async #open(): Promise<void> {
    try {
      this.#collector = await this.#options.open()
    } catch (error) {
      this.#opening = undefined
      throw error
    }
  }

  #drop(count: number, reason: string): void {
    this.#dropped += count
    this.#lastReason = reason
    if (this.#isTimeToTell()) this.#tell()
  }

  #isTimeToTell(): boolean {
    return this.#options.clock.monotonicMs() - this.#toldAtMs >= NOTICE_MS
  }

  #tell(): void {
    this.#options.log.warn('spans were dropped', { dropped: this.#dropped, reason: this.#lastReason })
    this.#dropped = 0
    this.#toldAtMs = this.#options.clock.monotonicMs()
  }
}

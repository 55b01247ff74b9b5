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
/** Drops are told at most so often. */
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
  #collector: Promise<Collector> | undefined
  /** Sends what is queued until nothing is left; undefined while nothing is. */
  #sending: Promise<void> | undefined
  /** Ends the wait for a whole batch. */
  #full = new AbortController()
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
    if (this.#queue.length >= BATCH_MAX) this.#full.abort()
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
    if (this.#queue.length > 0) this.#drop(this.#queue.splice(0).length, 'the daemon stopped before they were sent')
    if (this.#dropped > 0) this.#tell()
    const collector = await this.#collector?.catch(() => undefined)
    collector?.close()
  }

  async #send(): Promise<void> {
    // A moment later, so that whoever observes is through with it.
    await Promise.resolve()
    while (this.#queue.length > 0) {
      await this.#wholeBatch()
      const batch = this.#queue.splice(0, BATCH_MAX)
      try {
        await this.#inTime(batch)
        if (this.#dropped > 0) this.#tell()
      } catch (error) {
        this.#drop(batch.length, errorText(error))
      }
    }
    this.#sending = undefined
  }

  async #wholeBatch(): Promise<void> {
    if (this.#queue.length >= BATCH_MAX || this.#closing.signal.aborted) return
    this.#full = new AbortController()
    await this.#options.clock.sleep(DELAY_MS, this.#full.signal)
  }

  async #inTime(batch: readonly Spanned[]): Promise<void> {
    const enough = new AbortController()
    const tooLate = this.#options.clock.sleep(SEND_MS_MAX, enough.signal).then(() => {
      if (!enough.signal.aborted) throw new Error(`no answer within ${SEND_MS_MAX / 1000} s`)
    })
    const collector = await this.#opened()
    try {
      await Promise.race([collector.send(batch), tooLate])
    } catch (error) {
      collector.disconnect()
      throw error
    } finally {
      enough.abort()
    }
  }

  #opened(): Promise<Collector> {
    if (!this.#collector) {
      this.#collector = this.#options.open()
      this.#collector.catch(() => {
        this.#collector = undefined
      })
    }
    return this.#collector
  }

  #drop(count: number, reason: string): void {
    this.#dropped += count
    this.#lastReason = reason
    if (this.#options.clock.monotonicMs() - this.#toldAtMs >= NOTICE_MS) this.#tell()
  }

  #tell(): void {
    this.#options.log.warn('spans were dropped', { dropped: this.#dropped, reason: this.#lastReason })
    this.#dropped = 0
    this.#toldAtMs = this.#options.clock.monotonicMs()
  }
}

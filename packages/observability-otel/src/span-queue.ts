/**
 * The bounded queue between the daemon's work and the collector. It accepts observations without waiting and sends them in
 * batches, one at a time. Spans that it cannot keep or send are dropped and counted.
 *
 * The BatchSpanProcessor of OpenTelemetry does not meet these rules. It reports drops as text to a process-global logger, and
 * a failed batch as an error without the number of its spans. Its `shutdown` sends all batches at the same time and has no
 * time limit of its own. Its export timer keeps the process alive, and it cannot use the host's clock.
 */
import { endsWithin } from '@sluice/kit'
import { type Clock, errorText, type Logger, type Observation } from '@sluice/sdk'
import type { Collector } from './collector.ts'
import { isSpanObservation, type SpanObservation } from './describe-span.ts'

/** The number of waiting spans, of about half a kilobyte each. */
export const QUEUE_MAX = 4096
export const BATCH_MAX = 512
/** The time that an incomplete batch waits for more spans. */
export const DELAY_MS = 1000
/** The time for one batch with the retries of the exporter. A batch that takes longer is dropped. */
export const SEND_MS_MAX = 12_000
/** The time that `close` takes to send the remaining spans. */
export const CLOSE_MS_MAX = 2000
/** The shortest time between two log lines about drops, unless the collector works again. */
export const NOTICE_MS = 60_000

export class SpanQueue {
  readonly #clock: Clock
  readonly #log: Logger
  readonly #open: () => Promise<Collector>
  readonly #closing = new AbortController()
  #queue: SpanObservation[] = []
  /** The number of spans in the batch that the collector has not answered yet. */
  #unanswered = 0
  #opening: Promise<void> | undefined
  #collector: Collector | undefined
  /** Ends when the queue is empty; undefined while it is. */
  #sending: Promise<void> | undefined
  /** Aborted to end the wait for a full batch. */
  #full = new AbortController()
  #isClosed = false
  /** True if the collector did not accept the last batch. */
  #isFailing = false
  #dropped = 0
  #dropReason = ''
  #noticedAtMs = Number.NEGATIVE_INFINITY

  /** `open` is called for the first batch, and again for a later one if it failed. */
  constructor(clock: Clock, log: Logger, open: () => Promise<Collector>) {
    this.#clock = clock
    this.#log = log
    this.#open = open
  }

  /** Never throws and never waits. Ignores an observation that is not a span. */
  add(observation: Observation): void {
    if (!isSpanObservation(observation) || this.#closing.signal.aborted) return
    if (this.#queue.length >= QUEUE_MAX) {
      this.#drop(1, 'the collector is slower than the spans arrive')
      return
    }
    this.#queue.push(observation)
    if (this.#queue.length === BATCH_MAX) this.#full.abort()
    this.#sending ??= this.#sendAll()
  }

  /** Sends the remaining spans for at most `CLOSE_MS_MAX`, then drops the rest. May be called twice. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#closing.abort()
    this.#full.abort()
    if (this.#sending) await endsWithin(this.#sending, CLOSE_MS_MAX, this.#clock)
    this.#isClosed = true
    const remaining = this.#queue.splice(0).length + this.#unanswered
    if (remaining > 0) this.#drop(remaining, 'the daemon stopped before they were sent')
    if (this.#dropped > 0) this.#notice()
    this.#collector?.close()
  }

  async #sendAll(): Promise<void> {
    // Leaves the caller's tick, so that `add` returns first.
    await Promise.resolve()
    while (this.#queue.length > 0) {
      await this.#batchReady()
      const batch = this.#queue.splice(0, BATCH_MAX)
      this.#unanswered = batch.length
      const failure = await this.#failureOf(batch)
      if (this.#isClosed) return
      this.#unanswered = 0
      this.#report(batch.length, failure)
    }
    this.#sending = undefined
  }

  /** Resolves when a full batch waits, or after `DELAY_MS`. */
  async #batchReady(): Promise<void> {
    if (this.#queue.length >= BATCH_MAX || this.#closing.signal.aborted) return
    this.#full = new AbortController()
    await this.#clock.sleep(DELAY_MS, this.#full.signal)
  }

  /** Sends a batch. Returns the reason why the collector did not accept it in time, or undefined. */
  async #failureOf(batch: readonly SpanObservation[]): Promise<string | undefined> {
    const timer = new AbortController()
    const timedOut = this.#clock.sleep(SEND_MS_MAX, timer.signal).then(() => {
      if (timer.signal.aborted) return undefined
      this.#collector?.close()
      return `no answer within ${SEND_MS_MAX / 1000} s`
    })
    try {
      return await Promise.race([this.#send(batch), timedOut])
    } catch (error) {
      return errorText(error)
    } finally {
      timer.abort()
    }
  }

  async #send(batch: readonly SpanObservation[]): Promise<undefined> {
    this.#opening ??= this.#openCollector()
    await this.#opening
    await this.#collector?.send(batch)
  }

  async #openCollector(): Promise<void> {
    try {
      this.#collector = await this.#open()
    } catch (error) {
      this.#opening = undefined
      throw error
    }
  }

  /** Counts a failed batch. After a success, logs earlier drops if the collector works again or a notice is due. */
  #report(count: number, failure: string | undefined): void {
    const isRecovered = this.#isFailing && failure === undefined
    this.#isFailing = failure !== undefined
    if (failure !== undefined) this.#drop(count, failure)
    else if (this.#dropped > 0 && (isRecovered || this.#isNoticeDue())) this.#notice()
  }

  #drop(count: number, reason: string): void {
    this.#dropped += count
    this.#dropReason = reason
    if (this.#isNoticeDue()) this.#notice()
  }

  #isNoticeDue(): boolean {
    return this.#clock.monotonicMs() - this.#noticedAtMs >= NOTICE_MS
  }

  #notice(): void {
    this.#log.warn('spans dropped', { dropped: this.#dropped, reason: this.#dropReason })
    this.#dropped = 0
    this.#noticedAtMs = this.#clock.monotonicMs()
  }
}

/** Keeps the order of a conversation after a gap: new messages wait for the missed ones, and a position passes no message that failed. */
import { AppError, type Clock, type ListenContext } from '@sluice/sdk'

export interface MissedFirstOptions {
  readonly clock: Pick<Clock, 'sleep'>
  readonly context: Pick<ListenContext, 'signal' | 'catchUp'>
  /** How long a new message waits for missed ones: a platform that expects acknowledgements closes the connection after some seconds. */
  readonly waitMs: number
  /** Holds the positions where they are, until the returned function is called. */
  hold(): () => void
  /** Reads and delivers the messages that may be missing. */
  read(signal: AbortSignal): Promise<void>
}

export class MissedFirst {
  readonly #options: MissedFirstOptions
  #order: Promise<unknown> = Promise.resolve()
  #stored: Promise<unknown> = Promise.resolve()
  /** The readings that were asked for and have not ended. */
  #readings = 0

  constructor(options: MissedFirstOptions) {
    this.#options = options
  }

  /** Whether missed messages are being read. */
  get isReading(): boolean {
    return this.#readings > 0
  }

  /** Reads messages that may be missing. The positions stay where they are until that has succeeded. */
  start(): void {
    const { clock, context, waitMs, hold, read } = this.#options
    const { signal } = context
    const release = hold()
    const ended = context.catchUp(read)
    this.#readings += 1
    // A reading that is asked for during another one prolongs no wait: messages would wait longer than the platform does.
    if (this.#readings === 1) this.#order = Promise.race([ended, clock.sleep(waitMs, signal)])
    void ended.then(() => {
      this.#readings -= 1
      if (!signal.aborted) release()
    })
  }

  /** Resolves once missed messages are stored, have taken too long, or never will be, because the signal has aborted. */
  async settled(): Promise<void> {
    await this.#order
  }

  /** Like `settled`, but throws `unavailable` at the stop: a message that is stored then could run before the missed ones. */
  async pass(): Promise<void> {
    await this.#order
    if (this.#options.context.signal.aborted)
      throw new AppError('unavailable', 'Sluice stops while messages before this one are being read')
  }

  /** Resolves once the new messages so far are stored or have failed, and the missed ones before them. Throws like `pass`. */
  async passAll(): Promise<void> {
    await this.pass()
    await this.#stored
  }

  /**
   * Waits until a message is stored. Then calls `advance`, but not before the messages before it have been stored. If storing fails, rejects
   * and reads the messages again.
   */
  async store(durable: Promise<void>, advance: () => void): Promise<void> {
    this.#stored = Promise.allSettled([durable, this.#stored]).then(([{ status }]) => {
      if (status === 'rejected') this.start()
      else advance()
    })
    await durable
  }
}

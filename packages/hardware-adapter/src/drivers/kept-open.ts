/** Keeps a device open between calls that follow each other, and closes it once it has been idle for a while. */
import { SerialQueue } from '@sluice/kit'
import type { Clock } from '@sluice/sdk'
import { leavesAdapterUsable } from '../adapter-errors.ts'

/** Other programs can use the device after this time without a call. */
const IDLE_MS = 10_000
/** The device guard admits fewer calls at a time. */
const CALLS_MAX = 32

interface Closable {
  close(): Promise<void>
}

export class KeptOpen<Port extends Closable> {
  readonly #clock: Clock
  readonly #open: () => Promise<Port>
  readonly #calls = new SerialQueue({ name: 'the adapter', tasksMax: CALLS_MAX })
  #current: Promise<Port> | undefined
  #idle = new AbortController()

  constructor(clock: Clock, open: () => Promise<Port>) {
    this.#clock = clock
    this.#open = open
  }

  /**
   * Runs `work` after the calls before it, and opens the device first if it is not open. Closes the device after an error that may
   * have left it in an unknown state, so that the next call opens it again.
   */
  use<Result>(work: (port: Port) => Promise<Result>): Promise<Result> {
    return this.#calls.run(() => this.#transact(work))
  }

  /** Closes the device at once; a running call fails. The next call opens the device again. */
  async close(): Promise<void> {
    this.#idle.abort()
    const opened = this.#current
    this.#current = undefined
    // Opening may have failed, or the device may be gone.
    await opened?.then((port) => port.close()).catch(() => undefined)
  }

  async #transact<Result>(work: (port: Port) => Promise<Result>): Promise<Result> {
    this.#idle.abort()
    this.#current ??= this.#open()
    const opened = this.#current
    let port: Port | undefined
    try {
      port = await opened
      return await work(port)
    } catch (error) {
      if (!port || !leavesAdapterUsable(error)) await this.close()
      throw error
    } finally {
      this.#idle = new AbortController()
      if (this.#current === opened) void this.#closeWhenIdle(opened, this.#idle.signal)
    }
  }

  async #closeWhenIdle(opened: Promise<Port>, signal: AbortSignal): Promise<void> {
    await this.#clock.sleep(IDLE_MS, signal)
    if (signal.aborted) return
    // Closing is queued like a call, because the next call must not open the device before it is closed.
    await this.#calls.run(async () => {
      if (!signal.aborted && this.#current === opened) await this.close()
    })
  }
}

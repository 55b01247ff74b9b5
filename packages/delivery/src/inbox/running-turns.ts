/** The turns that run, by their session, so that a new conversation begins between two turns. */
import { endsWithin } from '@sluice/kit'
import type { Clock } from '@sluice/sdk'

/** How long a new conversation waits for a turn that does not end when it is stopped, such as one inside a tool. */
const STOPPING_MS_MAX = 10_000

export interface RunningTurn {
  /** Aborts when the sender begins a new conversation, or interrupts the turn. */
  readonly signal: AbortSignal
  /** Whether the turn ends only to begin anew with what its sender has written. */
  isInterrupted(): boolean
  /** Called at the end of the turn. */
  ended(isStopped: boolean): void
}

interface Running {
  readonly sender: string
  isInterrupted: boolean
  readonly stop: AbortController
  /** Resolves to whether `stop` ended the turn. */
  readonly ended: Promise<boolean>
}

export interface RunningTurnsOptions {
  readonly clock: Clock
  /** Aborts when the daemon stops. */
  readonly stopping: AbortSignal
}

export class RunningTurns {
  readonly #options: RunningTurnsOptions
  readonly #running = new Map<string, Running>()
  /** The sessions between two conversations, whose next turn waits. */
  readonly #between = new Map<string, Promise<void>>()

  constructor(options: RunningTurnsOptions) {
    this.#options = options
  }

  /** Resolves once no new conversation of the session is about to begin. */
  async open(session: string): Promise<void> {
    for (let between = this.#between.get(session); between; between = this.#between.get(session)) await between
  }

  /** Adds the turn of a session, which answers this sender. A session has one turn at a time. */
  begin(session: string, sender: string): RunningTurn {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const running: Running = { sender, isInterrupted: false, stop: new AbortController(), ended: promise }
    this.#running.set(session, running)
    return {
      signal: running.stop.signal,
      isInterrupted: () => running.isInterrupted,
      ended: (isStopped) => {
        if (this.#running.get(session) === running) this.#running.delete(session)
        resolve(isStopped)
      },
    }
  }

  /** Interrupts the turn of a session if it answers this sender. */
  interrupt(session: string, sender: string): void {
    const running = this.#running.get(session)
    if (running?.sender !== sender || running.stop.signal.aborted) return
    running.isInterrupted = true
    running.stop.abort()
  }

  /**
   * Stops the turn of a session, and runs `work` before the next one begins. `whileWaiting` runs the wait for the end of the turn. Resolves to
   * whether it stopped one.
   */
  async between(
    session: string,
    whileWaiting: (wait: () => Promise<boolean>) => Promise<boolean>,
    work: () => Promise<void>,
  ): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#between.set(session, promise)
    try {
      const running = this.#running.get(session)
      const hasStopped = running !== undefined && (await whileWaiting(() => this.#stop(running)))
      await work()
      return hasStopped
    } finally {
      this.#between.delete(session)
      resolve()
    }
  }

  async #stop(running: Running): Promise<boolean> {
    const { clock, stopping } = this.#options
    const { stop, ended } = running
    running.isInterrupted = false
    stop.abort()
    return !(await endsWithin(ended, STOPPING_MS_MAX, clock, stopping)) || ended
  }
}

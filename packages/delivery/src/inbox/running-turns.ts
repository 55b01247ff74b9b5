/** The turns that run, by their session, so that a new conversation begins between two turns. */
import { BoundedMap, endsWithin } from '@sluice/kit'
import { agentOfSession, type Clock, parseChatSession } from '@sluice/sdk'

/** How long a new conversation waits for a turn that does not end when it is stopped, such as one inside a tool. */
const STOPPING_MS_MAX = 10_000
/** Beyond this number of interrupts of a turn, its sender's messages wait for its next step. */
const INTERRUPTS_MAX = 20
/** The most turns whose interrupts are counted at the same time. */
const COUNTED_MAX = 1000

export interface RunningTurn {
  /** Aborts when the sender begins a new conversation, interrupts the turn, or stops it before the agent has got it. */
  readonly signal: AbortSignal
  /** Whether the turn ends only to restart with the new messages of its sender. */
  isInterrupted(): boolean
  /** Called when the agent has got the turn: from then on, the agent aborts it. */
  isWithAgent(): void
  /** Called at the end of the turn. */
  ended(isStopped: boolean): void
}

/** A turn, its message, and the sender of that. */
interface Begun {
  readonly turnId: string
  readonly number: number
  readonly sender: string
}

interface Running extends Begun {
  isInterrupted: boolean
  isWithAgent: boolean
  readonly stop: AbortController
  /** Resolves to whether `stop` ended the turn. */
  readonly ended: Promise<boolean>
}

export interface BetweenTurns {
  /** Whether the turn that answers this sender may be stopped. */
  mayStop(sender: string): boolean
  /** Only the turn of a message with a lower number is stopped. */
  readonly before: number
  /** Runs the wait for the end of the turn. */
  whileWaiting(wait: () => Promise<boolean>): Promise<boolean>
  work(): Promise<void>
}

export interface RunningTurnsOptions {
  readonly clock: Clock
  /** Aborts when the daemon stops. */
  readonly stopping: AbortSignal
}

export class RunningTurns {
  readonly #options: RunningTurnsOptions
  readonly #running = new Map<string, Running>()
  /** How often the turns that go on after an interrupt were interrupted. */
  readonly #interrupts = new BoundedMap<string, number>(COUNTED_MAX)
  /** The sessions between two conversations, whose next turn waits. */
  readonly #between = new Map<string, Promise<void>>()

  constructor(options: RunningTurnsOptions) {
    this.#options = options
  }

  /** Resolves once no new conversation of the session is about to begin. */
  async open(session: string): Promise<void> {
    for (let between = this.#between.get(session); between; between = this.#between.get(session)) await between
  }

  /** Adds the turn of a session. A session has one turn at a time. */
  begin(session: string, begun: Begun): RunningTurn {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const running: Running = { ...begun, isInterrupted: false, isWithAgent: false, stop: new AbortController(), ended: promise }
    this.#running.set(session, running)
    return {
      signal: running.stop.signal,
      isInterrupted: () => running.isInterrupted,
      isWithAgent: () => {
        running.isWithAgent = true
      },
      ended: (isStopped) => {
        if (this.#running.get(session) === running) this.#running.delete(session)
        if (!running.isInterrupted) this.#interrupts.delete(begun.turnId)
        resolve(isStopped)
      },
    }
  }

  /** Whether the turn of a message runs in this process. */
  runs(number: number): boolean {
    return [...this.#running.values()].some((one) => one.number === number)
  }

  /** Resolves once these turns have ended, and the store has their ends; at the latest after `STOPPING_MS_MAX`. */
  async allEnded(turnIds: readonly string[]): Promise<void> {
    const { clock, stopping } = this.#options
    const ends = [...this.#running.values()].flatMap(({ turnId, ended }) => (turnIds.includes(turnId) ? [ended] : []))
    if (ends.length > 0) await endsWithin(Promise.all(ends), STOPPING_MS_MAX, clock, stopping)
  }

  /** Aborts a turn that the agent has not got yet, such as one whose files are fetched. Returns its sender; undefined for any other turn. */
  stopEarly(turnId: string): string | undefined {
    const running = [...this.#running.values()].find((one) => one.turnId === turnId)
    if (!running || running.isWithAgent || (running.stop.signal.aborted && !running.isInterrupted)) return undefined
    running.stop.abort()
    return running.sender
  }

  /**
   * Returns the newest turn that answers one of these senders in a thread of the conversation whose session, outside of threads, this is; only that of a
   * message with a number below `before`.
   */
  inThread(
    session: string,
    senders: readonly string[],
    before = Number.POSITIVE_INFINITY,
  ): { readonly session: string; readonly turnId: string } | undefined {
    const found = [...this.#running].findLast(
      ([other, running]) => senders.includes(running.sender) && running.number < before && isInThreadOf(other, session),
    )
    return found && { session: found[0], turnId: found[1].turnId }
  }

  /** Whether the turn of a session answers this sender, and was not interrupted too often. */
  mayInterrupt(session: string, sender: string): boolean {
    return this.#interruptible(session, sender) !== undefined
  }

  /** Interrupts the turn of a session where `mayInterrupt` says so. */
  interrupt(session: string, sender: string): void {
    const running = this.#interruptible(session, sender)
    if (!running) return
    this.#interrupts.set(running.turnId, this.#interruptsOf(running) + 1)
    running.isInterrupted = true
    running.stop.abort()
  }

  #interruptible(session: string, sender: string): Running | undefined {
    const running = this.#running.get(session)
    if (running?.sender !== sender || running.stop.signal.aborted) return undefined
    return this.#interruptsOf(running) < INTERRUPTS_MAX ? running : undefined
  }

  #interruptsOf({ turnId }: Running): number {
    return this.#interrupts.get(turnId) ?? 0
  }

  /**
   * Stops the turn of a session, and runs the work before the next one begins. Resolves to whether it stopped one, or to undefined, and does
   * nothing, when the turn answers a sender whose turn may not be stopped.
   */
  async between(session: string, { mayStop, before, whileWaiting, work }: BetweenTurns): Promise<boolean | undefined> {
    const stoppable = (): Running | undefined => {
      const running = this.#running.get(session)
      return running && running.number < before ? running : undefined
    }
    const sender = stoppable()?.sender
    if (sender !== undefined && !mayStop(sender)) return undefined
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#between.set(session, promise)
    try {
      const running = stoppable()
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

/** Whether a session is that of a thread in the conversation whose session, outside of threads, is `outside`. */
export function isInThreadOf(session: string, outside: string): boolean {
  const [one, other] = [parseChatSession(session), parseChatSession(outside)]
  if (one?.thread === undefined || !other || other.thread !== undefined || agentOfSession(session) !== agentOfSession(outside)) return false
  return one.channel === other.channel && one.account === other.account && one.conversation === other.conversation
}

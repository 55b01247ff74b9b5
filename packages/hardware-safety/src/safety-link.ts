/** One safety process as the daemon sees it: it asks, and what it is told comes back as promises. */
import { AppError, type Clock, type Companion, type Host } from '@sluice/sdk'
import type { MoveEnd, MoveRequest } from './core/robot-event.ts'
import type { FromKernel, KernelInit, ToKernel, View } from './kernel/messages.ts'

export interface LinkDeps {
  readonly host: Pick<Host, 'companion' | 'clock'>
  readonly init: KernelInit
  /** Of what nobody asked for. */
  readonly onNews: (message: FromKernel) => void
  /** Called once. */
  readonly onEnd: (how: LinkEnd) => void
  /** Breaks off the start. */
  readonly signal: AbortSignal
}

export interface LinkEnd {
  readonly why: string
  /** `start`: it never began its work; `fault`: a part of the robot failed; `crash`: itself. */
  readonly stage: 'start' | 'fault' | 'crash'
}

/** A look around, a reset and a halt take at most a quarter of a second. */
const ANSWER_MS_MAX = 1000
/** Of a slow computer. */
const START_MS_MAX = 30_000
/** What a movement, and backing off from what it bumped into, may take beyond their own limits. */
const MOVE_GRACE_MS = 5000
const WAITING_MAX = 64

interface Waiting {
  resolve(answer: MoveEnd | View | undefined): void
  reject(error: AppError): void
}

export class SafetyLink {
  readonly #clock: Clock
  readonly #waiting = new Map<number, Waiting>()
  readonly #ready = Promise.withResolvers<void>()
  readonly #moveMsMax: number
  #companion: Companion | undefined
  #number = 0
  #isReady = false
  #failure: string | undefined
  #hasFault = false

  private constructor({ host, init }: LinkDeps) {
    this.#clock = host.clock
    this.#moveMsMax = 2 * init.config.safety.max_drive_duration * 1000 + MOVE_GRACE_MS
  }

  /** Resolves once sensors and motors are in its hands. Throws `unavailable`, with its reason, if that cannot be; then it has ended. */
  static async start(deps: LinkDeps): Promise<SafetyLink> {
    const { SAFETY_PROCESS_MARK, SAFETY_PROCESS_URL } = await import('./kernel/safety-process.ts')
    const link = new SafetyLink(deps)
    link.#ready.promise.catch(() => undefined)
    link.#companion = await deps.host.companion({
      module: SAFETY_PROCESS_URL,
      mark: SAFETY_PROCESS_MARK,
      init: deps.init,
      onMessage: (message) => link.#take(message as FromKernel, deps.onNews),
      onEnd: (why) => link.#ended(why, deps.onEnd),
    })
    const breakOff = () => link.#ready.reject(new AppError('unavailable', 'the robot is being shut down'))
    deps.signal.addEventListener('abort', breakOff, { once: true })
    // It may have come while this was on its way
    if (deps.signal.aborted) breakOff()
    try {
      await link.#within(START_MS_MAX, link.#ready.promise)
    } catch (error) {
      await link.close()
      throw error
    } finally {
      deps.signal.removeEventListener('abort', breakOff)
    }
    return link
  }

  /**
   * Resolves once it has ended, however that was; an abort stops it. Rejects with `unavailable` if the safety process ends,
   * and with `aborted` if nothing moved.
   */
  async move(asked: Omit<MoveRequest, 'id'>, signal: AbortSignal): Promise<MoveEnd> {
    if (signal.aborted) throw new AppError('aborted', 'not moved: nobody waits for it any more')
    const stop = () => void this.stop('nobody waits for it any more').catch(() => undefined)
    signal.addEventListener('abort', stop, { once: true })
    try {
      return await this.#ask((id) => ({ kind: 'move', move: { ...asked, id } }), this.#moveMsMax)
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }

  /** Resolves once the motors were told to halt. What does not answer this, a movement or a reset is ended. */
  async stop(why: string): Promise<void> {
    await this.#ask((id) => ({ kind: 'stop', id, why }), ANSWER_MS_MAX)
  }

  look(): Promise<View> {
    return this.#ask((id) => ({ kind: 'look', id }), ANSWER_MS_MAX)
  }

  /** What it sees after it. */
  reset(): Promise<View> {
    return this.#ask((id) => ({ kind: 'reset', id }), ANSWER_MS_MAX)
  }

  /** The motors halt first. Idempotent. */
  async close(): Promise<void> {
    await this.#companion?.close()
  }

  async #ask<Answer extends MoveEnd | View | undefined>(messageOf: (id: number) => ToKernel, msMax: number): Promise<Answer> {
    const id = ++this.#number
    const message = messageOf(id)
    // Whatever waits, a stop goes through
    if (this.#waiting.size >= WAITING_MAX && message.kind !== 'stop') throw new AppError('unavailable', 'too much is asked of the robot')
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    this.#waiting.set(id, { resolve: (answer) => resolve(answer as Answer), reject })
    try {
      if (!this.#companion) throw new AppError('unavailable', 'the safety process has not been started')
      this.#companion.send(message)
      return await this.#within(msMax, promise)
    } catch (error) {
      // Held up, it would do later what nobody waits for any more
      if (message.kind !== 'look') void this.close()
      throw error
    } finally {
      this.#waiting.delete(id)
    }
  }

  async #within<Result>(ms: number, work: Promise<Result>): Promise<Result> {
    const over = new AbortController()
    const late = this.#clock.sleep(ms, over.signal).then((): never => {
      throw new AppError('unavailable', 'the safety process does not answer')
    })
    late.catch(() => undefined)
    try {
      return await Promise.race([work, late])
    } finally {
      over.abort()
    }
  }

  #take(message: FromKernel, onNews: LinkDeps['onNews']): void {
    switch (message.kind) {
      case 'ready':
        this.#isReady = true
        this.#ready.resolve()
        break
      case 'failed':
        this.#failure = message.why
        break
      case 'faulted':
        this.#failure = message.why
        this.#hasFault = true
        break
      case 'ended':
        this.#waiting.get(message.end.id)?.resolve(message.end)
        break
      case 'stopped':
        this.#waiting.get(message.id)?.resolve(undefined)
        break
      case 'seen':
        this.#waiting.get(message.id)?.resolve(message.view)
    }
    onNews(message)
  }

  #ended(how: string, onEnd: LinkDeps['onEnd']): void {
    const why = this.#failure ?? how
    const error = new AppError('unavailable', this.#isReady ? `the safety process has ended: ${why}` : why)
    this.#ready.reject(error)
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
    onEnd({ why, stage: this.#hasFault ? 'fault' : this.#isReady ? 'crash' : 'start' })
  }
}

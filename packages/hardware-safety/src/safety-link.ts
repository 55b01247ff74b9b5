/** The daemon's connection to one safety process: sends requests and returns their answers as promises. */
import { AppError, type Clock, type Companion, type StartCompanion } from '@sluice/sdk'
import type { MoveEnd, Movement } from './core/robot-event.ts'
import type { KernelInit, KernelMessage, KernelRequest, View } from './kernel/messages.ts'

export interface LinkHost {
  readonly clock: Clock
  readonly companion: StartCompanion
}

export interface LinkListener {
  /** Called with every message of the process, answers included. */
  onMessage(message: KernelMessage): void
  /** Called once. */
  onEnd(end: LinkEnd): void
}

export interface LinkEnd {
  readonly why: string
  /** `start` when the process ended before it was ready, `fault` when a part of the robot failed, `crash` otherwise. */
  readonly stage: 'start' | 'fault' | 'crash'
}

/** A look, a reset and a halt each take at most a quarter of a second. */
const ANSWER_MS_MAX = 1000
/** The time for the safety process to start, long enough for a slow computer. */
const START_MS_MAX = 30_000
/** The time that a movement and its retreat may take beyond their own limits. */
const MOVE_GRACE_MS = 5000
const PENDING_MAX = 64

interface Pending {
  resolve(answer: MoveEnd | View | undefined): void
  reject(error: AppError): void
}

export class SafetyLink {
  readonly #clock: Clock
  readonly #pending = new Map<number, Pending>()
  readonly #ready = Promise.withResolvers<void>()
  readonly #moveMsMax: number
  #companion: Companion | undefined
  #lastId = 0
  #isReady = false
  #failure: string | undefined
  #hasFault = false

  private constructor(clock: Clock, driveSecsMax: number) {
    this.#clock = clock
    this.#moveMsMax = 2 * driveSecsMax * 1000 + MOVE_GRACE_MS
  }

  /**
   * Starts a safety process and resolves once it controls the sensors and motors. Throws `unavailable` with the cause when the
   * process cannot do so, or when `signal` aborts; the process has then ended.
   */
  static async start(host: LinkHost, init: KernelInit, listener: LinkListener, signal: AbortSignal): Promise<SafetyLink> {
    const { SAFETY_PROCESS_MARK, SAFETY_PROCESS_URL } = await import('./kernel/safety-process.ts')
    const link = new SafetyLink(host.clock, init.config.safety.max_drive_duration)
    link.#ready.promise.catch(() => undefined)
    link.#companion = await host.companion({
      module: SAFETY_PROCESS_URL,
      mark: SAFETY_PROCESS_MARK,
      init,
      onMessage: (message) => {
        link.#handle(message as KernelMessage)
        listener.onMessage(message as KernelMessage)
      },
      onEnd: (why) => listener.onEnd(link.#end(why)),
    })
    const abort = () => link.#ready.reject(new AppError('unavailable', 'The robot is shutting down'))
    signal.addEventListener('abort', abort, { once: true })
    // The signal may have aborted while the process was being started.
    if (signal.aborted) abort()
    try {
      await link.#within(START_MS_MAX, link.#ready.promise)
    } catch (error) {
      await link.close()
      throw error
    } finally {
      signal.removeEventListener('abort', abort)
    }
    return link
  }

  /**
   * Resolves with the end of the movement, whatever its reason. An abort of `signal` stops the robot. Throws `unavailable`
   * when the safety process ends and `aborted` when the signal aborted before the call.
   */
  async move(movement: Movement, signal: AbortSignal): Promise<MoveEnd> {
    if (signal.aborted) throw new AppError('aborted', 'Not moved: the call was aborted')
    const stop = () => void this.stop('the call was aborted').catch(() => undefined)
    signal.addEventListener('abort', stop, { once: true })
    try {
      return await this.#request((id) => ({ kind: 'move', move: { ...movement, id } }), this.#moveMsMax)
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }

  /** Resolves once the motors have the command to halt. Ends a safety process that does not answer; so do `move` and `reset`. */
  async stop(why: string, latches = false): Promise<void> {
    await this.#request((id) => ({ kind: 'stop', id, why, ...(latches && { latches }) }), ANSWER_MS_MAX)
  }

  look(): Promise<View> {
    return this.#request((id) => ({ kind: 'look', id }), ANSWER_MS_MAX)
  }

  /** Resets the emergency stop if it has been released, and returns the view after that. */
  reset(): Promise<View> {
    return this.#request((id) => ({ kind: 'reset', id }), ANSWER_MS_MAX)
  }

  /** Ends the process, which halts the motors first. Idempotent. */
  async close(): Promise<void> {
    await this.#companion?.close()
  }

  async #request<Answer extends MoveEnd | View | undefined>(toRequest: (id: number) => KernelRequest, msMax: number): Promise<Answer> {
    const id = ++this.#lastId
    const request = toRequest(id)
    // A stop is sent however many requests are pending.
    if (this.#pending.size >= PENDING_MAX && request.kind !== 'stop')
      throw new AppError('unavailable', `${PENDING_MAX} calls are already waiting for the robot`)
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    this.#pending.set(id, { resolve: (answer) => resolve(answer as Answer), reject })
    try {
      if (!this.#companion) throw new AppError('unavailable', 'The safety process has not been started')
      this.#companion.send(request)
      return await this.#within(msMax, promise)
    } catch (error) {
      // A process that hangs could carry out the request later, when no caller waits for it any more.
      if (request.kind !== 'look') void this.close()
      throw error
    } finally {
      this.#pending.delete(id)
    }
  }

  async #within<Result>(ms: number, work: Promise<Result>): Promise<Result> {
    const over = new AbortController()
    const late = this.#clock.sleep(ms, over.signal).then((): never => {
      throw new AppError('unavailable', 'The safety process does not answer')
    })
    late.catch(() => undefined)
    try {
      return await Promise.race([work, late])
    } finally {
      over.abort()
    }
  }

  #handle(message: KernelMessage): void {
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
        this.#pending.get(message.end.id)?.resolve(message.end)
        break
      case 'stopped':
        this.#pending.get(message.id)?.resolve(undefined)
        break
      case 'seen':
        this.#pending.get(message.id)?.resolve(message.view)
    }
  }

  #end(how: string): LinkEnd {
    const why = this.#failure ?? how
    const error = new AppError('unavailable', this.#isReady ? `The safety process has ended: ${why}` : why)
    this.#ready.reject(error)
    for (const { reject } of this.#pending.values()) reject(error)
    this.#pending.clear()
    return { why, stage: this.#hasFault ? 'fault' : this.#isReady ? 'crash' : 'start' }
  }
}

/**
 * The daemon's view of the robot. Starts the safety process when it is first needed or soon after the daemon, and restarts it a
 * few times when it crashes; after a crash the robot does not move until a person resets it.
 */
import { SerialQueue } from '@sluice/kit'
import { AppError, errorText, type Host } from '@sluice/sdk'
import type { MoveEnd, Movement } from './core/robot-event.ts'
import type { KernelMessage, View } from './kernel/messages.ts'
import { warningsOf } from './preflight.ts'
import { isSimulated } from './robot-config.ts'
import type { RobotConfig } from './robot-toml.ts'
import { type LinkEnd, SafetyLink } from './safety-link.ts'
import type { SimScript } from './sim/sim-body.ts'

/** Keeps the start of the safety process out of the start of the daemon. */
const START_AFTER_MS = 2000
const RESTARTS_MAX = 3
/** A process that ran for this long has its restarts counted from 0 again. */
const STEADY_MS = 600_000
/** The key in `host.keyValue` with the reason why nothing moves until a person resets the robot. */
const LATCHED_KEY = 'latched'
const LATCH_WRITES_MAX = 1000

export type RobotHost = Pick<Host, 'clock' | 'companion' | 'keyValue' | 'log'>

export class Robot {
  readonly config: RobotConfig
  readonly #host: RobotHost
  readonly #script: SimScript | undefined
  readonly #closing = new AbortController()
  #link: Promise<SafetyLink> | undefined
  #stops = 0
  #restarts = 0
  #startedAtMs = 0
  /** Why nothing moves until a person resets the robot; undefined until the stored reason has been read. */
  #latched: string | null | undefined
  readonly #latchWrites = new SerialQueue({ name: 'the record of the emergency stop', tasksMax: LATCH_WRITES_MAX })
  #ending: Promise<void> | undefined

  /** `script` adds behaviour to a simulated robot. */
  constructor(host: RobotHost, config: RobotConfig, script?: SimScript) {
    this.#host = host
    this.config = config
    this.#script = script
  }

  get isSimulated(): boolean {
    return isSimulated(this.config)
  }

  /** Counts the calls of `stop`. A movement that was requested before a stop must not begin after it. */
  get stops(): number {
    return this.#stops
  }

  /** Starts the safety process after a delay, unless a call has started it by then. Never rejects. */
  async startSoon(): Promise<void> {
    await this.#host.clock.sleep(START_AFTER_MS, this.#closing.signal)
    if (!this.#closing.signal.aborted) await this.#started().catch(() => undefined)
  }

  /** See `SafetyLink.move`. */
  async move(movement: Movement, signal: AbortSignal): Promise<MoveEnd> {
    return (await this.#started()).move(movement, signal)
  }

  /**
   * Resolves once the motors have the command to halt. Ends a safety process that does not answer: without it, no command to
   * the motors lasts longer than a fifth of a second. Never rejects.
   */
  stop(why: string): Promise<void> {
    return this.#stop(why, false)
  }

  /** Stops the robot as `stop` does. Nothing moves from then on, also after a restart, until a person resets it. */
  async emergencyStop(why: string): Promise<void> {
    this.#latch(why)
    await this.#stop(why, true)
    await this.#latchWrites.run(async () => undefined)
  }

  async #stop(why: string, latches: boolean): Promise<void> {
    this.#stops++
    const asked = this.#link
    // Without a safety process nothing moves.
    const link = await asked?.catch(() => undefined)
    await link?.stop(why, latches).catch((error: unknown) => {
      // The process ended by itself, for example because the whole service is being stopped.
      if (this.#link !== asked) return undefined
      this.#host.log.error('robot did not confirm the stop; ending the safety process', { error })
      return link.close()
    })
  }

  /** Resolves to the view of the sensors, and starts nothing: undefined while no safety process runs. `latched` is as in `View`. */
  async peek(): Promise<{ readonly view: View | undefined; readonly latched: string | null }> {
    const link = await this.#link?.catch(() => undefined)
    const view = await link?.look().catch(() => undefined)
    const stored = ((await this.#host.keyValue.get(LATCHED_KEY)) as string | undefined) ?? null
    return { view, latched: view ? view.latched : this.#latched === undefined ? stored : this.#latched }
  }

  async look(): Promise<View> {
    return (await this.#started()).look()
  }

  async reset(): Promise<View> {
    return (await this.#started()).reset()
  }

  /** Stops the robot first, so that the caller of a movement learns how far it came. Idempotent. */
  close(): Promise<void> {
    this.#ending ??= this.#end()
    return this.#ending
  }

  async #end(): Promise<void> {
    this.#closing.abort()
    const link = await this.#link?.catch(() => undefined)
    await this.stop('the robot is shutting down or being reconfigured')
    await link?.close()
    // Waits for the writes before this one.
    await this.#latchWrites.run(async () => undefined).catch(() => undefined)
  }

  async #started(): Promise<SafetyLink> {
    if (this.#closing.signal.aborted) throw new AppError('unavailable', 'The robot is shutting down or being reconfigured')
    if (this.#restarts > RESTARTS_MAX)
      throw new AppError(
        'unavailable',
        `The robot's safety process ended ${this.#restarts} times; restart the daemon to use the robot again`,
      )
    if (this.#link) return this.#link
    const starting = this.#start()
    this.#link = starting
    starting.catch((error: unknown) => {
      if (this.#link === starting) this.#link = undefined
      this.#host.log.error('robot start failed', { reason: errorText(error) })
    })
    return starting
  }

  async #start(): Promise<SafetyLink> {
    const { keyValue, log, clock } = this.#host
    for (const { detail, fix } of warningsOf(this.config)) log.warn(detail, { fix })
    const stored = ((await keyValue.get(LATCHED_KEY)) as string | undefined) ?? null
    // A reason from this run comes first, because it may not be stored yet.
    if (this.#latched === undefined) this.#latched = stored
    const latched = this.#latched
    const link = await SafetyLink.start(
      this.#host,
      { config: this.config, latched, ...(this.#script && { script: this.#script }) },
      { onMessage: (message) => this.#onMessage(message), onEnd: (end) => void this.#onEnd(end) },
      this.#closing.signal,
    )
    this.#startedAtMs = clock.monotonicMs()
    log.info('robot ready', { drive: this.config.drive.backend, latched })
    return link
  }

  async #onEnd({ why, stage }: LinkEnd): Promise<void> {
    if (stage === 'start') return
    this.#link = undefined
    if (this.#closing.signal.aborted) return
    const { log, clock } = this.#host
    log.error('robot safety process ended', { reason: why })
    // The next call starts a new process and finds out whether the failed part works again.
    if (stage === 'fault') return
    if (clock.monotonicMs() - this.#startedAtMs > STEADY_MS) this.#restarts = 0
    this.#restarts++
    this.#latch(`the safety process ended: ${why}`)
    if (this.#restarts <= RESTARTS_MAX && !this.#closing.signal.aborted) await this.#started().catch(() => undefined)
  }

  #onMessage(message: KernelMessage): void {
    const { log } = this.#host
    if (message.kind === 'began') log.info('robot movement began', { move: message.id, shortened: message.shortened })
    if (message.kind === 'ended') log.info('robot movement ended', { ...message.end })
    if (message.kind === 'bumped') log.warn('robot bumped into something', { sensor: message.sensor })
    if (message.kind === 'latched') {
      log.error('robot stopped until a person resets it', { reason: message.why })
      this.#latch(message.why)
    }
    if (message.kind === 'released') {
      log.warn('robot reset; it may move again')
      this.#latch(null)
    }
  }

  /** Sets the reason and stores it, in order, so that a restart of the daemon does not lose it. */
  #latch(why: string | null): void {
    const { log, keyValue } = this.#host
    this.#latched = why
    this.#latchWrites
      .run(async () => (why === null ? keyValue.delete(LATCHED_KEY) : keyValue.set(LATCHED_KEY, why)))
      .catch((error: unknown) => log.error('robot stop reason not stored', { reason: why, error }))
  }
}

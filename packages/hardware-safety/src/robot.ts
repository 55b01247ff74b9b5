/**
 * The robot as the daemon has it: requests to its safety process, which is started when it is first needed or soon after the
 * daemon, and again if it ends, a few times; it then begins stopped, until a person resets it.
 */
import { AppError, errorText, type Host } from '@sluice/sdk'
import type { MoveEnd, MoveRequest } from './core/robot-event.ts'
import type { FromKernel, View } from './kernel/messages.ts'
import { warningsOf } from './preflight.ts'
import { isSimulated } from './robot-config.ts'
import type { RobotConfig } from './robot-toml.ts'
import { type LinkEnd, SafetyLink } from './safety-link.ts'
import type { SimScript } from './sim/sim-body.ts'

export interface RobotOptions {
  readonly config: RobotConfig
  readonly script?: SimScript
}

/** The daemon has other things to do while it starts. */
const START_AFTER_MS = 2000
const RESTARTS_MAX = 3
/** One that ran for so long may end that often again. */
const STEADY_MS = 600_000
/** Of `host.keyValue`: why nothing moves until a person says so. */
const LATCHED_KEY = 'latched'

type RobotHost = Pick<Host, 'clock' | 'companion' | 'keyValue' | 'log'>

export class Robot {
  readonly #host: RobotHost
  readonly #options: RobotOptions
  readonly #closing = new AbortController()
  #link: Promise<SafetyLink> | undefined
  #stops = 0
  #restarts = 0
  #startedAtMs = 0
  /** Why nothing moves until a person says so; undefined: what was kept has not been read yet. */
  #latched: string | null | undefined
  #keeping: Promise<void> = Promise.resolve()
  #ending: Promise<void> | undefined

  constructor(host: RobotHost, options: RobotOptions) {
    this.#host = host
    this.#options = options
  }

  get config(): RobotConfig {
    return this.#options.config
  }

  get isSimulated(): boolean {
    return isSimulated(this.#options.config)
  }

  /** How often it was told to stop: what was asked for before that is not done after it. */
  get stops(): number {
    return this.#stops
  }

  /** Starts the safety process in a while, if nobody needed it until then. Never rejects. */
  async startSoon(): Promise<void> {
    await this.#host.clock.sleep(START_AFTER_MS, this.#closing.signal)
    if (!this.#closing.signal.aborted) await this.#started().catch(() => undefined)
  }

  async move(asked: Omit<MoveRequest, 'id'>, signal: AbortSignal): Promise<MoveEnd> {
    return (await this.#started()).move(asked, signal)
  }

  /**
   * Resolves once the motors have been told to halt. A safety process that does not answer is ended: without it no command to
   * the motors lasts longer than a fifth of a second. Never rejects.
   */
  async stop(why: string): Promise<void> {
    this.#stops++
    const asked = this.#link
    // Without a safety process nothing has moved
    const link = await asked?.catch(() => undefined)
    await link?.stop(why).catch((error: unknown) => {
      // It has ended by itself, as when the whole service is told to stop
      if (this.#link !== asked) return undefined
      this.#host.log.error('the safety process is ended: it did not stop the robot', { error })
      return link.close()
    })
  }

  async look(): Promise<View> {
    return (await this.#started()).look()
  }

  async reset(): Promise<View> {
    return (await this.#started()).reset()
  }

  /** Halts it first, so that who waits for a movement is told how far that came. Idempotent. */
  close(): Promise<void> {
    this.#ending ??= this.#end()
    return this.#ending
  }

  async #end(): Promise<void> {
    this.#closing.abort()
    const link = await this.#link?.catch(() => undefined)
    await this.stop('the robot is being shut down or set up anew')
    await link?.close()
    await this.#keeping
  }

  async #started(): Promise<SafetyLink> {
    if (this.#closing.signal.aborted) throw new AppError('unavailable', 'the robot is being shut down or set up anew')
    if (this.#restarts > RESTARTS_MAX)
      throw new AppError(
        'unavailable',
        `the robot's safety process ended ${this.#restarts} times; nothing moves until the daemon is restarted`,
      )
    if (this.#link) return this.#link
    const starting = this.#start()
    this.#link = starting
    starting.catch((error: unknown) => {
      if (this.#link === starting) this.#link = undefined
      this.#host.log.error('the robot cannot be used', { reason: errorText(error) })
    })
    return starting
  }

  async #start(): Promise<SafetyLink> {
    const { keyValue, log, clock } = this.#host
    for (const { detail, fix } of warningsOf(this.config)) log.warn(detail, { fix })
    const kept = ((await keyValue.get(LATCHED_KEY)) as string | undefined) ?? null
    // What has happened here since comes first: it may not be kept yet
    if (this.#latched === undefined) this.#latched = kept
    const latched = this.#latched
    const link = await SafetyLink.start({
      host: this.#host,
      init: { ...this.#options, latched },
      onNews: (message) => this.#heard(message),
      onEnd: (end) => void this.#ended(end),
      signal: this.#closing.signal,
    })
    this.#startedAtMs = clock.monotonicMs()
    log.info('the robot is ready', { drive: this.config.drive.backend, latched })
    return link
  }

  async #ended({ why, stage }: LinkEnd): Promise<void> {
    if (stage === 'start') return
    this.#link = undefined
    if (this.#closing.signal.aborted) return
    const { log, clock } = this.#host
    log.error("the robot's safety process has ended", { reason: why })
    // Whoever asks for the robot next finds out whether that part works again
    if (stage === 'fault') return
    if (clock.monotonicMs() - this.#startedAtMs > STEADY_MS) this.#restarts = 0
    this.#restarts++
    this.#latch(`the safety process ended: ${why}`)
    if (this.#restarts <= RESTARTS_MAX && !this.#closing.signal.aborted) await this.#started().catch(() => undefined)
  }

  #heard(message: FromKernel): void {
    const { log } = this.#host
    if (message.kind === 'began') log.info('the robot moves', { move: message.id, shortened: message.shortened })
    if (message.kind === 'ended') log.info('the robot has stopped', { ...message.end })
    if (message.kind === 'bumped') log.warn('the robot bumped into something', { sensor: message.sensor })
    if (message.kind === 'latched') {
      log.error('the robot was stopped for good', { reason: message.why })
      this.#latch(message.why)
    }
    if (message.kind === 'released') {
      log.warn('the robot was reset and may move again')
      this.#latch(null)
    }
  }

  /** Kept in the order it happened, so that a restart of the daemon does not forget it. */
  #latch(why: string | null): void {
    const { log, keyValue } = this.#host
    this.#latched = why
    const keep = () => (why === null ? keyValue.delete(LATCHED_KEY) : keyValue.set(LATCHED_KEY, why))
    this.#keeping = this.#keeping.then(keep).catch((error: unknown) => log.error('what stops the robot could not be kept', { error }))
  }
}

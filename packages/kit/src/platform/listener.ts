/**
 * The one owner of retries of long connections: opens a connection, opens the next after a delay when it ends, and knows the
 * health. Channels that listen run under it, and features with a connection of another kind, such as a broker.
 */
import {
  type ChannelHealth,
  type Clock,
  errorText,
  type Gap,
  type Lease,
  type ListenContext,
  type ListenCursors,
  type LogFields,
  type Logger,
} from '@sluice/sdk'
import { askedDelayMs } from '../time/backoff.ts'
import { every } from '../time/every.ts'
import { isRefusal, RetryPace, retry } from '../time/retry-pace.ts'
import { signalScope } from '../time/signal-scope.ts'

export interface ListenerOptions {
  readonly clock: Clock
  readonly log: Logger
  /** The fields of every log line, such as the name of the channel. */
  readonly fields: LogFields
  /**
   * Runs one connection until it ends, and never retries by itself. Resolves when the platform asks for another connection,
   * and rejects with the reason when the connection broke or could not be opened.
   */
  connect(context: ListenContext): Promise<void>
  readonly cursors?: ListenCursors | undefined
  /** Positions are stored only while it is held. */
  readonly lease?: Lease
  onGap?(gap: Gap): void
  /** See `RetryPaceOptions`. */
  readonly random?: () => number
}

/** After a connection that lasted this long, the delays begin again with the first. */
const STABLE_MS = 60_000
/** This many short connections in a row count as an outage. */
const SHORT_CONNECTIONS_MAX = 3
const FLUSH_MS = 5000
/** The shortest delay that `retrySoon` leaves. */
const SOON_MS = 1000

/** The end of a connection, or its request for another one. */
interface Ending {
  /** Why it broke; undefined when the platform asked for another connection. */
  readonly error?: unknown
  /** How long it was connected; undefined if it never was. */
  readonly lastedMs: number | undefined
}

export class Listener {
  readonly #options: ListenerOptions
  readonly #pace: RetryPace
  /** The connections that have not ended. */
  readonly #running = new Set<Promise<void>>()
  /** The connections that the platform has accepted and that have not ended. */
  #connected = 0
  /** Resolve when the next connection is accepted: connections that wait for their replacement. */
  readonly #replaced = new Set<() => void>()
  #missed: ((signal: AbortSignal) => Promise<void>) | undefined
  #catchingUp: Promise<void> | undefined
  #hasLoaded = false
  /** Ends the delay before the next attempt; undefined while none can be cut short. */
  #delay: AbortController | undefined
  #state: ChannelHealth['state'] = 'connecting'
  #detail: string | undefined
  #problem: string | undefined
  #lastEventAtMs: number | undefined
  /** The reason that was logged last, so that a lasting failure is logged once. */
  #loggedReason: string | undefined
  #retryAtMs: number | undefined

  constructor(options: ListenerOptions) {
    this.#options = options
    this.#pace = new RetryPace(options)
  }

  get health(): ChannelHealth {
    const isImpaired = this.#state === 'ok' && this.#problem !== undefined
    const detail = isImpaired ? this.#problem : this.#detail
    return {
      state: isImpaired ? 'down' : this.#state,
      ...(detail !== undefined && { detail }),
      ...(this.#lastEventAtMs !== undefined && { lastEventAtMs: this.#lastEventAtMs }),
    }
  }

  /** The time of `clock.monotonicMs` at which the next attempt begins; undefined while a connection runs. */
  get retryAtMs(): number | undefined {
    return this.#retryAtMs
  }

  /** Keeps a connection until `signal` aborts, and resolves once everything has ended. Never rejects. Call it once. */
  async run(signal: AbortSignal): Promise<void> {
    const flushing = this.#flushPeriodically(signal)
    while (!signal.aborted) {
      const ending = await this.#connect(signal)
      if (!signal.aborted) await this.#waitAfter(ending, signal)
    }
    for (const resolve of this.#replaced) resolve()
    await Promise.all([...this.#running, this.#catchingUp, flushing])
    await this.#flush()
  }

  /** Opens a connection. Resolves when another one is needed; this one may still run then. */
  async #connect(signal: AbortSignal): Promise<Ending> {
    const { clock } = this.#options
    const replace = Promise.withResolvers<void>()
    let connectedAtMs: number | undefined
    const lastedMs = () => (connectedAtMs === undefined ? undefined : clock.monotonicMs() - connectedAtMs)
    const context: ListenContext = {
      signal,
      lease: this.#options.lease ?? null,
      report: {
        connected: () => {
          if (connectedAtMs !== undefined) return
          connectedAtMs = clock.monotonicMs()
          this.#accepted()
        },
        event: () => {
          this.#lastEventAtMs = clock.nowMs()
        },
        gap: (gap) => this.#gap(gap),
        problem: (detail) => {
          this.#problem = detail
        },
        replace: () => {
          const next = Promise.withResolvers<void>()
          this.#replaced.add(next.resolve)
          replace.resolve()
          return next.promise
        },
      },
      catchUp: (task) => this.#catchUp(task, signal),
      retrySoon: () => this.#delay?.abort(),
    }
    const ended = this.#listen(context)
      .then(
        () => ({ lastedMs: lastedMs() }),
        (error: unknown) => ({ error, lastedMs: lastedMs() }),
      )
      .then((ending) => {
        if (connectedAtMs !== undefined) this.#ended()
        return ending
      })
    const running = ended.then(() => void this.#running.delete(running))
    this.#running.add(running)
    return Promise.race([ended, replace.promise.then(() => ({ lastedMs: lastedMs() }))])
  }

  async #listen(context: ListenContext): Promise<void> {
    if (!this.#hasLoaded) await this.#options.cursors?.load()
    this.#hasLoaded = true
    await this.#options.connect(context)
  }

  #accepted(): void {
    this.#connected += 1
    this.#state = 'ok'
    this.#detail = undefined
    this.#problem = undefined
    for (const resolve of this.#replaced) resolve()
    this.#replaced.clear()
  }

  /** An accepted connection ended. Its failure, if it is one, decides later whether this is an outage. */
  #ended(): void {
    this.#connected -= 1
    if (this.#connected === 0) this.#state = 'connecting'
  }

  async #waitAfter({ error, lastedMs }: Ending, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options
    if (lastedMs !== undefined && lastedMs >= STABLE_MS) this.#pace.reset()
    const delayMs = this.#pace.failed(error)
    const reason = error === undefined ? 'The platform asked for another connection' : errorText(error)
    if (this.#connected === 0) {
      const isShort = lastedMs === undefined || this.#pace.failures >= SHORT_CONNECTIONS_MAX
      this.#state = isShort || isRefusal(error) ? 'down' : 'connecting'
      this.#detail = this.#state === 'down' ? reason : undefined
    }
    this.#log(error, reason, lastedMs, delayMs)
    const fixedMs = isRefusal(error) ? delayMs : Math.min(delayMs, Math.max(SOON_MS, askedDelayMs(error, delayMs)))
    this.#retryAtMs = clock.monotonicMs() + delayMs
    await clock.sleep(fixedMs, signal)
    this.#delay = new AbortController()
    using scope = signalScope([signal, this.#delay.signal])
    await clock.sleep(delayMs - fixedMs, scope.signal)
    this.#delay = undefined
    this.#retryAtMs = undefined
  }

  #log(error: unknown, reason: string, lastedMs: number | undefined, delayMs: number): void {
    const { log, fields } = this.#options
    const line = { ...fields, reason, retry_secs: Math.ceil(delayMs / 1000) }
    if (error === undefined) log.debug('opening another connection', line)
    else if (reason === this.#loggedReason) log.debug('connection failed again', line)
    else if (isRefusal(error)) log.error('platform refused the connection', line)
    else log.warn(lastedMs === undefined ? 'connection failed, trying again' : 'connection lost', line)
    const hasLasted = lastedMs !== undefined && this.#pace.failures === 1
    this.#loggedReason = hasLasted ? undefined : reason
  }

  #gap(gap: Gap): void {
    const { log, fields, onGap } = this.#options
    const since = gap.sinceMs === undefined ? {} : { since: new Date(gap.sinceMs).toISOString() }
    log.warn('messages may be missing', { ...fields, ...since, reason: gap.why })
    onGap?.(gap)
  }

  #catchUp(task: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    this.#missed = task
    this.#catchingUp ??= this.#deliverMissed(signal)
    return this.#catchingUp
  }

  async #deliverMissed(signal: AbortSignal): Promise<void> {
    const { log, fields } = this.#options
    const onFailure = (error: unknown): void => log.warn('missed messages not read, trying again', { ...fields, error })
    for (let task = this.#missed; task && !signal.aborted; task = this.#missed) {
      let newest = task
      const run = (): Promise<void> => {
        newest = this.#missed ?? newest
        this.#missed = undefined
        return newest(signal)
      }
      await retry(run, { ...this.#options, signal, onFailure })
    }
    this.#catchingUp = undefined
  }

  /** Stores the positions every few seconds instead of with each message: the inbox drops duplicates after a crash. */
  async #flushPeriodically(signal: AbortSignal): Promise<void> {
    if (this.#options.cursors) await every(this.#options.clock, FLUSH_MS, signal, () => void this.#flush())
  }

  async #flush(): Promise<void> {
    const { cursors, lease, log, fields } = this.#options
    if (!this.#hasLoaded || lease?.mayAct() === false) return
    await cursors?.flush().catch((error: unknown) => log.warn('positions not stored', { ...fields, error }))
  }
}

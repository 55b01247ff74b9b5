/**
 * The relays of the bot. The channel works while at least one of them does; each other one is tried again with growing delays.
 * When none works, the daemon decides when to try them again.
 */
import { isRefusal, RetryPace } from '@sluice/kit'
import { AppError, errorText, type Host, type ListenContext } from '@sluice/sdk'
import { Feed } from './feed.ts'
import type { Identity } from './identity.ts'
import type { Intake } from './intake.ts'
import type { Positions } from './positions.ts'
import { RelayLink, shownUrl } from './relay-link.ts'

export interface RelaysOptions {
  readonly host: Host
  readonly urls: readonly string[]
  readonly identity: Identity
  readonly positions: Positions
  readonly random?: () => number
}

/** A relay that the channel keeps a connection to. */
interface Relay {
  readonly url: string
  readonly pace: RetryPace
  /** The time of the monotonic clock before which the relay asked not to be tried again. */
  notBeforeMs: number
  /** Why it does not work; undefined while it does, or while it is being tried. */
  failure: unknown
  loggedReason: string | undefined
}

/** After a connection that lasted this long, the delays begin again. */
const STABLE_MS = 60_000
const LONGEST_MS = 300_000
/** Positions move at most this often while nothing arrives. */
const ADVANCE_MS = 60_000

export class Relays {
  readonly #options: RelaysOptions
  readonly #relays: readonly Relay[]
  /** The connections that serve the subscription. */
  readonly #working = new Map<RelayLink, Feed>()
  #advancedAtMs = Number.NEGATIVE_INFINITY

  constructor(options: RelaysOptions) {
    this.#options = options
    const { clock } = options.host
    this.#relays = options.urls.map((url) => ({
      url,
      pace: new RetryPace({ clock, longestMs: LONGEST_MS, ...(options.random && { random: options.random }) }),
      notBeforeMs: 0,
      failure: undefined,
      loggedReason: undefined,
    }))
  }

  /** The connections that work. */
  get links(): readonly RelayLink[] {
    return [...this.#working.keys()].filter(({ isOpen }) => isOpen)
  }

  /** Keeps the connections until the channel stops, or rejects as soon as no relay works. */
  async listen(intake: Intake, context: ListenContext): Promise<void> {
    const over = new AbortController()
    const stop = () => over.abort()
    context.signal.addEventListener('abort', stop, { once: true })
    if (context.signal.aborted) stop()
    const failed = Promise.withResolvers<never>()
    for (const relay of this.#relays) relay.failure = undefined
    const loops = this.#relays.map((relay) => this.#keep(relay, intake, { context, over: over.signal, fail: failed.reject }))
    try {
      await Promise.race([failed.promise, Promise.all(loops)])
    } catch (error) {
      if (!context.signal.aborted) throw error
    } finally {
      context.signal.removeEventListener('abort', stop)
      over.abort()
      await Promise.all(loops)
    }
  }

  /** Moves the positions of relays whose messages are all durable. Called before the positions are stored. */
  advance(hasStopped = false): void {
    const nowMs = this.#options.host.clock.monotonicMs()
    if (!hasStopped && nowMs - this.#advancedAtMs < ADVANCE_MS) return
    this.#advancedAtMs = nowMs
    for (const [link, feed] of this.#working) if (link.isOpen && feed.isIdle) this.#options.positions.advance(link.url)
    this.#options.positions.prune(this.#options.urls)
  }

  /** Connects to one relay again and again. Never rejects. */
  async #keep(
    relay: Relay,
    intake: Intake,
    { context, over, fail }: { readonly context: ListenContext; readonly over: AbortSignal; readonly fail: (error: unknown) => void },
  ): Promise<void> {
    const { clock } = this.#options.host
    const waitMs = relay.notBeforeMs - clock.monotonicMs()
    if (waitMs > 0) await clock.sleep(waitMs, over)
    while (!over.aborted) {
      relay.failure = undefined
      const startedMs = clock.monotonicMs()
      try {
        await this.#connect(relay, intake, context, over)
      } catch (error) {
        if (over.aborted) return
        if (clock.monotonicMs() - startedMs >= STABLE_MS) relay.pace.reset()
        relay.failure = error
        const delayMs = relay.pace.failed(error)
        relay.notBeforeMs = error instanceof AppError && error.retryAfterSecs !== undefined ? clock.monotonicMs() + delayMs : 0
        if (this.#working.size === 0 && this.#relays.every(({ failure }) => failure !== undefined)) return void fail(this.#failure())
        this.#log(relay, error, delayMs)
        await clock.sleep(delayMs, over)
      }
    }
  }

  async #connect(relay: Relay, intake: Intake, { report }: ListenContext, over: AbortSignal): Promise<never> {
    const { host, identity, positions } = this.#options
    const { clock, log } = host
    const link = await RelayLink.open(relay.url, { clock, identity, isOwn: true, signal: over })
    try {
      positions.follow(relay.url, report.gap)
      const feed = new Feed(link, intake, positions)
      return await feed.read(identity.pubkey, clock, {
        onEvent: () => report.event(),
        onReady: () => {
          this.#working.set(link, feed)
          report.connected()
          if (relay.loggedReason !== undefined) log.info('relay works again', { channel: 'relaynet', relay: shownUrl(relay.url) })
          relay.loggedReason = undefined
        },
      })
    } finally {
      if (over.aborted) this.#advanceLast(link)
      this.#working.delete(link)
      link.close()
    }
  }

  #advanceLast(link: RelayLink): void {
    if (this.#working.get(link)?.isIdle) this.#options.positions.advance(link.url)
  }

  /** Logs a reason once. While no relay works, the runner logs. */
  #log({ url, loggedReason }: Relay, error: unknown, delayMs: number): void {
    const { log } = this.#options.host
    const reason = errorText(error)
    const line = { channel: 'relaynet', relay: shownUrl(url), reason, retry_secs: Math.ceil(delayMs / 1000) }
    if (reason === loggedReason) log.debug('relay failed again', line)
    else log.warn('relay does not work, others are used', line)
    const relay = this.#relays.find((one) => one.url === url)
    if (relay) relay.loggedReason = reason
  }

  /** Returns the error of all relays: a refusal only if every one of them refuses. */
  #failure(): AppError {
    const failures = this.#relays.map(({ failure }) => failure)
    const [first] = failures
    const onlyOne = failures.length === 1 && first instanceof AppError
    if (onlyOne) return first
    const asked = failures.map((error) => (error instanceof AppError ? (error.retryAfterSecs ?? 0) : 0))
    const retryAfterSecs = Math.min(...asked)
    const code = failures.every(isRefusal) ? 'forbidden' : 'unavailable'
    const text = `No relay works: ${failures.map(errorText).join('; ')}`
    return new AppError(code, text, { ...(retryAfterSecs > 0 && { retryAfterSecs }) })
  }
}

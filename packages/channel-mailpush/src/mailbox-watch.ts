/** Keeps the mailbox subscribed to pushes. A subscription lasts seven days; it is renewed every day, and sooner after a failure. */
import { RetryPace } from '@sluice/kit'
import { errorText, type Host } from '@sluice/sdk'
import type { MailApi, Subscription } from './mail-api.ts'

const DAY_MS = 24 * 3_600_000
/** The shortest time between two renewals of a subscription that expires soon. */
const RENEW_MS_MIN = 60_000
/** The most reasons that are logged, once each, until a subscription succeeds. */
const LOGGED_REASONS_MAX = 20

export class MailboxWatch {
  readonly #host: Host
  readonly #api: MailApi
  readonly #subscription: Subscription
  readonly #loggedReasons = new Set<string>()
  #dueAtMs = Number.NEGATIVE_INFINITY
  readonly #pace: RetryPace
  #problem: string | undefined

  constructor(host: Host, api: MailApi, subscription: Subscription) {
    this.#host = host
    this.#api = api
    this.#subscription = subscription
    this.#pace = new RetryPace(host)
  }

  /** Why the last attempt failed; undefined if it succeeded. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** Returns the milliseconds until the subscription must be renewed. */
  dueInMs(): number {
    return Math.max(0, this.#dueAtMs - this.#host.clock.nowMs())
  }

  /** Subscribes and returns the newest change of the mailbox, which the profile states as well if the subscription fails. */
  async newestHistoryId(signal: AbortSignal): Promise<bigint> {
    try {
      return await this.#subscribe(signal)
    } catch (error) {
      const { historyId } = await this.#api.profile(signal)
      if (historyId === undefined) throw error
      return historyId
    }
  }

  /** Renews the subscription if it is due. Never rejects, because mails can be fetched without pushes; `problem` has the failure. */
  async renewIfDue(signal: AbortSignal): Promise<void> {
    if (this.#host.clock.nowMs() >= this.#dueAtMs) await this.#subscribe(signal).catch(() => undefined)
  }

  async #subscribe(signal: AbortSignal): Promise<bigint> {
    try {
      const { historyId, expiresAtMs } = await this.#api.watch(this.#subscription, signal)
      this.#onSuccess(expiresAtMs)
      return historyId
    } catch (error) {
      if (!signal.aborted) this.#onFailure(error)
      throw error
    }
  }

  #onSuccess(expiresAtMs: number): void {
    const { clock, log } = this.#host
    const nowMs = clock.nowMs()
    this.#dueAtMs = nowMs + Math.max(RENEW_MS_MIN, Math.min(DAY_MS, (expiresAtMs - nowMs) / 2))
    if (this.#pace.failures > 0) log.info('mailbox subscribed again')
    this.#pace.reset()
    this.#problem = undefined
    this.#loggedReasons.clear()
  }

  #onFailure(error: unknown): void {
    const { clock, log } = this.#host
    this.#dueAtMs = clock.nowMs() + this.#pace.failed(error)
    this.#problem = errorText(error)
    if (this.#loggedReasons.has(this.#problem) || this.#loggedReasons.size >= LOGGED_REASONS_MAX) return
    this.#loggedReasons.add(this.#problem)
    log.warn('mailbox subscription failed; mails arrive late', { error })
  }
}

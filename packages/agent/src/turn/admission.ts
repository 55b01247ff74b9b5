/** The limits of clients (`[limits]`): which turn may begin, and what it may still spend. */
import type { LimitedClient } from '@sluice/config'
import {
  type AdmissionStore,
  AppError,
  type Clock,
  type CountedLimits,
  type Events,
  type Exceeded,
  type GatewayTexts,
  gatewayText,
  type LimitCause,
} from '@sluice/sdk'

export type { LimitedClient } from '@sluice/config'

export interface AdmissionDeps {
  readonly store: AdmissionStore
  readonly clock: Clock
  readonly events: Pick<Events, 'emit'>
  /** Returns the limits in force that count the turns of a client; empty without a limit. */
  limitsOf(client: LimitedClient): readonly CountedLimits[]
}

/** A turn as it asks for admission; see `AdmissionRequest`. */
interface AskingTurn {
  readonly id: string
  readonly shard: number
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** The time after which a client with too many turns in flight may try again. */
const IN_FLIGHT_RETRY_SECS = 5

export class Admission {
  readonly #deps: AdmissionDeps

  constructor(deps: AdmissionDeps) {
    this.#deps = deps
  }

  hasLimits(client: LimitedClient): boolean {
    return this.#deps.limitsOf(client).length > 0
  }

  /**
   * Counts a turn of this client, once for each id. Resolves to the limit that it would exceed; it then counts nothing. A client
   * without a limit costs no read.
   */
  async take(client: LimitedClient, turn: AskingTurn, store = this.#deps.store): Promise<Exceeded | undefined> {
    const counted = this.#deps.limitsOf(client)
    return counted.length === 0 ? undefined : store.take({ ...turn, counted, atMs: this.#deps.clock.nowMs() })
  }

  /** Counts a turn as `take` does, or throws `rate_limited`. */
  async require(client: LimitedClient, turn: AskingTurn): Promise<void> {
    const exceeded = await this.take(client, turn)
    if (!exceeded) return
    if (exceeded.limit !== 'turns_in_flight') await this.report(exceeded)
    throw this.#refusal(exceeded)
  }

  /** Takes back the admission of a turn that was not accepted. */
  async cancel(id: string): Promise<void> {
    await this.#deps.store.cancel(id)
  }

  /** Whether a limit in dollars is set for this client; the pool of strangers has one by default. */
  hasOwnSpendingLimit(client: LimitedClient | undefined): boolean {
    return this.#spendingLimits(client).some(({ key }) => !isPool(key))
  }

  /** Throws `rate_limited` once the client may spend nothing more today. */
  async checkSpending(client: LimitedClient | undefined): Promise<void> {
    const limits = this.#spendingLimits(client)
    const exceeded = limits.length === 0 ? undefined : await this.#deps.store.overspent(limits, this.#deps.clock.nowMs())
    if (!exceeded) return
    await this.report(exceeded)
    throw this.#refusal(exceeded)
  }

  /** Records the cost of a model call. Resolves when it is durable, so that no later call overlooks it. */
  async spent(client: LimitedClient | undefined, usd: number): Promise<void> {
    const keys = usd > 0 ? this.#spendingLimits(client).map(({ key }) => key) : []
    if (keys.length > 0) await this.#deps.store.spend(keys, usd, this.#deps.clock.nowMs())
  }

  /** Records that a client or a pool is held back, and emits an event when that is news. */
  async report(exceeded: Exceeded): Promise<void> {
    const atMs = this.#deps.clock.nowMs()
    const held = { client: exceeded.key, cause: causeOf(exceeded), sinceMs: atMs, untilMs: exceeded.freeAtMs }
    if (await this.#deps.store.hold(held, quietMs(held.cause, atMs))) this.emitReached(exceeded)
  }

  emitReached({ key, limit, value, freeAtMs }: Exceeded): void {
    this.#deps.events.emit({ type: 'limit_reached', client: key, limit, value, until: new Date(freeAtMs).toISOString() })
  }

  #spendingLimits(client: LimitedClient | undefined): readonly CountedLimits[] {
    return client ? this.#deps.limitsOf(client).filter(({ usdPerDay }) => usdPerDay > 0) : []
  }

  #refusal(exceeded: Exceeded): AppError {
    const waitSecs = Math.ceil((exceeded.freeAtMs - this.#deps.clock.nowMs()) / 1000)
    const retryAfterSecs = exceeded.limit === 'turns_in_flight' ? IN_FLIGHT_RETRY_SECS : Math.max(1, waitSecs)
    return new AppError('rate_limited', describeLimit(exceeded), { retryAfterSecs })
  }
}

/** The cause under which a limit holds a client back. */
export const causeOf = ({ limit }: Pick<Exceeded, 'limit'>): LimitCause => (limit === 'turns_in_flight' ? 'turns_per_hour' : limit)

/** Returns for how long one notice about a cause is enough: an hour, or since the day (UTC) began. */
export const quietMs = (cause: LimitCause, atMs: number): number => (cause === 'usd_per_day' ? (atMs % DAY_MS) + 1 : HOUR_MS)

/** Whether a key is that of a pool of all strangers. */
const isPool = (key: string): boolean => /^strangers(?::|$)/.test(key)

/** Tells a client in one or two sentences which limit it has reached, and when that ends. */
export function describeLimit({ key, limit, value, freeAtMs }: Exceeded, texts: GatewayTexts = {}): string {
  const isOfPool = isPool(key)
  if (limit === 'turns_in_flight')
    return isOfPool
      ? `Only ${value} of the turns of guests may be in flight at once.`
      : `Only ${value} of your turns may be in flight at once.`
  if (limit === 'turns_waiting' || limit === 'waiting_mb') return gatewayText('limit_waiting', texts)
  // Rounded up to the minute, so that the client does not come back too early.
  const time = new Date(Math.ceil(freeAtMs / 60_000) * 60_000).toISOString().slice(11, 16)
  if (limit === 'commands') return gatewayText('limit_commands', texts, { limit: value, time })
  const own = limit === 'usd_per_day' ? 'limit_cost' : 'limit_turns'
  const isRoom = key.startsWith('room:')
  return gatewayText(isOfPool ? `guests_${own}` : isRoom ? `room_${own}` : own, texts, { limit: value, time })
}

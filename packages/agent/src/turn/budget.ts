/**
 * The spending limits of a day and a month in UTC (`[cost]`), checked before each model call. Calls in progress are not reserved,
 * so up to `max_concurrent_turns` calls may exceed a limit together. In a cluster, the spending of other nodes is read every few seconds.
 */

import type { CostConfig } from '@sluice/config'
import { isoTime } from '@sluice/kit'
import { AppError, type Clock, type Events, type TurnStore } from '@sluice/sdk'

interface Period {
  readonly startMs: number
  /** The recorded spending, read from the store once a period, and again when it is stale. */
  readonly kept: Promise<number>
  readonly readAtMs: number
  /** The spending since the store was read. */
  addedUsd: number
}

interface BudgetOptions {
  readonly freshMs?: number | undefined
  readonly events?: Events
}

const dayStartMs = (date: Date, ahead = 0): number => Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate() + ahead)
const monthStartMs = (date: Date, ahead = 0): number => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + ahead)

export class Budget {
  readonly #store: Pick<TurnStore, 'spentUsd'>
  readonly #clock: Clock
  readonly #freshMs: number
  readonly #events: Events | undefined
  /** The limits of each period that were reported as reached, with the end of the period. */
  readonly #reported = new Map<string, number>()
  /** The spending of turns of this process that have not ended; empty unless others spend, too. */
  readonly #unrecorded = new Map<string, number>()
  #day: Period | undefined
  #month: Period | undefined

  /** `freshMs` is how long a reading holds; for the whole period where no other process spends. `events` gets each limit that is reached. */
  constructor(store: Pick<TurnStore, 'spentUsd'>, clock: Clock, { freshMs = Number.POSITIVE_INFINITY, events }: BudgetOptions = {}) {
    this.#store = store
    this.#clock = clock
    this.#freshMs = freshMs
    this.#events = events
  }

  /** Throws `rate_limited` when a limit is reached, and `unavailable` when the store cannot be read. Without limits it reads nothing. */
  async check({ daily_limit_usd: daily, monthly_limit_usd: monthly }: CostConfig): Promise<void> {
    const now = new Date(this.#clock.nowMs())
    if (daily !== undefined) {
      this.#day = this.#current(this.#day, dayStartMs(now))
      if ((await this.#spentUsd(this.#day)) >= daily) throw this.#exceeded('day', daily, dayStartMs(now, 1))
    }
    if (monthly !== undefined) {
      this.#month = this.#current(this.#month, monthStartMs(now))
      if ((await this.#spentUsd(this.#month)) >= monthly) throw this.#exceeded('month', monthly, monthStartMs(now, 1))
    }
  }

  /** `turn` is the turn that records the spending at its end, which `ended` reports. */
  add(usd: number, turn?: string): void {
    if (turn !== undefined && this.#freshMs < Number.POSITIVE_INFINITY) this.#unrecorded.set(turn, (this.#unrecorded.get(turn) ?? 0) + usd)
    if (this.#day) this.#day.addedUsd += usd
    if (this.#month) this.#month.addedUsd += usd
  }

  /** The store has the spending of the turn now, or it is lost. */
  ended(turn: string): void {
    this.#unrecorded.delete(turn)
  }

  #current(period: Period | undefined, startMs: number): Period {
    const nowMs = this.#clock.monotonicMs()
    if (period?.startMs === startMs && nowMs - period.readAtMs < this.#freshMs) return period
    const addedUsd = this.#unrecorded.values().reduce((sum, usd) => sum + usd, 0)
    return { startMs, kept: this.#store.spentUsd(startMs), readAtMs: nowMs, addedUsd }
  }

  async #spentUsd(period: Period): Promise<number> {
    try {
      return (await period.kept) + period.addedUsd
    } catch (error) {
      // The next check reads again.
      if (this.#day === period) this.#day = undefined
      if (this.#month === period) this.#month = undefined
      throw error
    }
  }

  #exceeded(period: 'day' | 'month', limitUsd: number, endsAtMs: number): AppError {
    const retryAfterSecs = Math.max(1, Math.ceil((endsAtMs - this.#clock.nowMs()) / 1000))
    const limit = `${period} ${limitUsd}`
    if (this.#reported.get(limit) !== endsAtMs) {
      for (const [earlier, endedAtMs] of this.#reported) if (endedAtMs <= this.#clock.nowMs()) this.#reported.delete(earlier)
      this.#reported.set(limit, endsAtMs)
      this.#events?.emit({ type: 'budget_spent', period, limit_usd: limitUsd, until: isoTime(endsAtMs) })
    }
    const which = period === 'day' ? 'Daily' : 'Monthly'
    return new AppError('rate_limited', `${which} budget of ${limitUsd} USD is used up`, { retryAfterSecs })
  }
}

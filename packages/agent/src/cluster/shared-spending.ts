/**
 * What all nodes of a cluster have spent in a period, cheap enough to read every few seconds: what ended long ago is added up once in a
 * quarter of an hour, and only what ended since is read each time.
 */
import type { Clock, TurnStore } from '@sluice/sdk'

const QUARTER_MS = 15 * 60_000
/** A turn may be stored this long after the time of its end. */
const LATE_MS = 60_000

interface Settled {
  readonly untilMs: number
  readonly usd: Promise<number>
}

export class SharedSpending implements Pick<TurnStore, 'spentUsd'> {
  readonly #turns: Pick<TurnStore, 'spentUsd' | 'costs'>
  readonly #clock: Clock
  /** By the start of the period. */
  readonly #settled = new Map<number, Settled>()

  constructor(turns: Pick<TurnStore, 'spentUsd' | 'costs'>, clock: Clock) {
    this.#turns = turns
    this.#clock = clock
  }

  /** Periods begin at a multiple of 15 minutes. */
  async spentUsd(startMs: number): Promise<number> {
    const untilMs = Math.max(startMs, Math.floor((this.#clock.nowMs() - LATE_MS) / QUARTER_MS) * QUARTER_MS)
    const known = this.#settled.get(startMs)
    const settled = known?.untilMs === untilMs ? known : { untilMs, usd: this.#settle(startMs, untilMs) }
    this.#settled.set(startMs, settled)
    try {
      return (await settled.usd) + (await this.#turns.spentUsd(untilMs))
    } catch (error) {
      this.#settled.delete(startMs)
      throw error
    }
  }

  async #settle(startMs: number, untilMs: number): Promise<number> {
    for (const start of this.#settled.keys()) if (start < startMs - 32 * 96 * QUARTER_MS) this.#settled.delete(start)
    if (untilMs === startMs) return 0
    const costs = await this.#turns.costs({ sinceMs: startMs, untilMs, periodMs: untilMs - startMs, offsetMs: startMs })
    return costs.reduce((sum, { costUsd }) => sum + costUsd, 0)
  }
}

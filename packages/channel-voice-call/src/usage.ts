/** The time and cost of the calls of a day, which outlive a restart. */
import type { KeyValue } from '@sluice/sdk'

export interface UsageOptions {
  readonly keyValue: KeyValue
  readonly secsMax: number | undefined
  readonly usdPerMinute: number
  readonly usdMax: number | undefined
}

const TRIES_MAX = 20

export class Usage {
  readonly #options: UsageOptions

  constructor(options: UsageOptions) {
    this.#options = options
  }

  /** Adds the seconds of a call that has ended. Calls that end at the same time are all counted. */
  async add(seconds: number, nowMs: number): Promise<void> {
    const { keyValue } = this.#options
    const key = keyOf(nowMs)
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const before = await keyValue.get(key)
      if (await keyValue.swap(key, before, secondsIn(before) + Math.max(0, Math.ceil(seconds)))) return
    }
  }

  /** Returns the key of the limit that the calls of today have reached; `running` are the seconds of the calls that go on. */
  async reached(running: number, nowMs: number): Promise<'max_minutes_per_day' | 'max_usd_per_day' | undefined> {
    const { keyValue, secsMax, usdPerMinute, usdMax } = this.#options
    if (secsMax === undefined && usdMax === undefined) return undefined
    const seconds = secondsIn(await keyValue.get(keyOf(nowMs))) + running
    if (secsMax !== undefined && seconds >= secsMax) return 'max_minutes_per_day'
    return usdMax !== undefined && (seconds / 60) * usdPerMinute >= usdMax ? 'max_usd_per_day' : undefined
  }

  /** Forgets the days before yesterday. */
  async prune(nowMs: number): Promise<void> {
    const { keyValue } = this.#options
    const oldest = keyOf(nowMs - 24 * 3_600_000)
    for (const { key } of await keyValue.list('usage/', 100)) if (key < oldest) await keyValue.delete(key)
  }
}

const keyOf = (nowMs: number): string => `usage/${new Date(nowMs).toISOString().slice(0, 10)}`
const secondsIn = (stored: unknown): number => (typeof stored === 'number' && stored >= 0 ? stored : 0)

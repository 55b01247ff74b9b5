/** When the bot last polled, kept across restarts, so that the loss of updates after a long outage is noticed. */
import type { Gap, KeyValue, ListenCursors } from '@sluice/sdk'

const KEY = 'polled_at'
/** The server keeps updates that long. See "Getting updates" of Telegram's documentation. */
const KEPT_MS = 86_400_000
/** A poll ends every few seconds, and the stored time need not be as exact. */
const STORE_EVERY_MS = 60_000

export class PollCursor implements ListenCursors {
  readonly #keyValue: KeyValue
  /** Milliseconds since 1970; 0 before the first poll of all. */
  #polledAtMs = 0
  #storedAtMs = 0

  constructor(keyValue: KeyValue) {
    this.#keyValue = keyValue
  }

  async load(): Promise<void> {
    const stored = await this.#keyValue.get(KEY)
    if (typeof stored !== 'number' || !Number.isFinite(stored)) return
    this.#storedAtMs = stored
    this.#polledAtMs = Math.max(this.#polledAtMs, stored)
  }

  /** Records a poll. Returns the gap since the one before, if the server has dropped updates meanwhile. */
  polled(nowMs: number): Gap | undefined {
    const sinceMs = this.#polledAtMs
    this.#polledAtMs = nowMs
    if (sinceMs === 0 || nowMs - sinceMs <= KEPT_MS) return undefined
    return { sinceMs, why: 'the platform keeps updates for one day' }
  }

  async flush(): Promise<void> {
    const polledAtMs = this.#polledAtMs
    if (Math.abs(polledAtMs - this.#storedAtMs) < STORE_EVERY_MS) return
    await this.#keyValue.set(KEY, polledAtMs)
    this.#storedAtMs = polledAtMs
  }
}

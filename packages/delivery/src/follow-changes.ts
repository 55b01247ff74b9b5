/** Follows changes of the store one check at a time. Changes during a check share the next one, and a failed check is repeated. */
import type { Logger, StoreChange } from '@sluice/sdk'

/** A change after which rows may be due that no lane has. */
export interface NoticedChange extends StoreChange {
  /** True for a write of another process; false for a change of the features, and for a row that was replayed here. */
  readonly isForeign: boolean
}

export const ANY_ROW: NoticedChange = { shards: null, isForeign: false }

export class ChangeFollower {
  readonly #log: Logger
  readonly #check: (change: NoticedChange) => Promise<void>
  /** The changes that no check has followed yet. */
  #noticed: NoticedChange | undefined
  #isChecking = false

  constructor(log: Logger, check: (change: NoticedChange) => Promise<void>) {
    this.#log = log
    this.#check = check
  }

  notice(change: NoticedChange): void {
    this.#noticed = this.#noticed ? merged(this.#noticed, change) : change
    this.retry()
  }

  /** Repeats a check that failed. Does nothing when every change has been followed. */
  retry(): void {
    if (!this.#isChecking && this.#noticed) void this.#follow()
  }

  async #follow(): Promise<void> {
    this.#isChecking = true
    for (let change = this.#noticed; change; change = this.#noticed) {
      this.#noticed = undefined
      try {
        await this.#check(change)
      } catch (error) {
        this.#noticed = this.#noticed ? merged(change, this.#noticed) : change
        this.#log.error('looking for waiting deliveries failed', { error })
        break
      }
    }
    this.#isChecking = false
  }
}

/** Messages of several notices stay messages. */
function merged(a: NoticedChange, b: NoticedChange): NoticedChange {
  const isForeign = a.isForeign || b.isForeign
  if (!a.shards || !b.shards || !a.among || !b.among) return { shards: null, isForeign }
  const shards = { from: Math.min(a.shards.from, b.shards.from), to: Math.max(a.shards.to, b.shards.to) }
  const messages = a.messages && b.messages && { messages: [...a.messages, ...b.messages] }
  return { shards, among: new Set([...a.among, ...b.among]), isForeign, ...messages }
}

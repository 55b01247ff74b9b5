/** The time of each message that the bot sends, kept so that a repeated attempt makes the same event. */
import { BoundedMap } from '@sluice/kit'
import { type Clock, type KeyValue, sha256Hex } from '@sluice/sdk'

const PREFIX = 'sent/'
const DAY_SECS = 86_400
/** The outbox gives a message up after a day. */
const KEPT_DAYS = 3
const PRUNE_EVERY = 200
const PRUNE_MAX = 1000
const PEERS_MAX = 1000
/** Clients sort by seconds, so messages to one conversation get different ones; at most this far ahead of the clock. */
const AHEAD_SECS_MAX = 120

export class Stamps {
  readonly #keyValue: KeyValue
  readonly #clock: Clock
  readonly #latest = new BoundedMap<string, number>(PEERS_MAX)
  #taken = 0

  constructor(keyValue: KeyValue, clock: Clock) {
    this.#keyValue = keyValue
    this.#clock = clock
  }

  /** Returns the seconds of the message with this client id, the same for each call. `count` seconds from it belong to the message. */
  async of(clientId: string, conversation: string, count: number): Promise<number> {
    const nowSecs = Math.floor(this.#clock.nowMs() / 1000)
    const today = Math.floor(nowSecs / DAY_SECS)
    for (let day = today; day >= today - KEPT_DAYS; day -= 1) {
      const known = await this.#keyValue.get(keyOf(day, clientId))
      if (typeof known === 'number') return known
    }
    const next = (this.#latest.get(conversation) ?? 0) + 1
    const at = next > nowSecs && next <= nowSecs + AHEAD_SECS_MAX ? next : nowSecs
    this.#latest.set(conversation, at + count - 1)
    await this.#keyValue.set(keyOf(today, clientId), at)
    await this.#prune(today)
    return at
  }

  /** Keys sort by their day, so the oldest ones come first. */
  async #prune(today: number): Promise<void> {
    this.#taken += 1
    if (this.#taken % PRUNE_EVERY !== 1) return
    for (const { key } of await this.#keyValue.list(PREFIX, PRUNE_MAX))
      if (Number(key.split('/')[1]) < today - KEPT_DAYS) await this.#keyValue.delete(key)
  }
}

const keyOf = (day: number, clientId: string): string => `${PREFIX}${day}/${sha256Hex(clientId).slice(0, 32)}`

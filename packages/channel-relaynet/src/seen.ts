/** The ids of messages that were delivered, kept over restarts: relays send the messages of several days again on each connection. */
import { members } from '@sluice/kit/foreign-json'
import type { KeyValue } from '@sluice/sdk'

const PREFIX = 'seen/'
const DAY_SECS = 86_400
/** The days between the horizon of the oldest position and the latest accepted time. */
const DAYS_MAX = 64
/** Beyond it the oldest ids of a day are forgotten here; the inbox still knows them for three days. */
const IDS_OF_DAY_MAX = 5000
/** 96 of 256 bits: too many to find a second message for. */
const ID_BYTES = 12

export class Seen {
  readonly #keyValue: KeyValue
  /** Short ids by the day on which their messages were written, oldest first. */
  readonly #days = new Map<number, Set<string>>()
  readonly #dirty = new Set<number>()
  #written: Promise<void> = Promise.resolve()
  #isLoaded = false

  constructor(keyValue: KeyValue) {
    this.#keyValue = keyValue
  }

  /** Reads the stored ids once. Rejects if the store fails. */
  async load(): Promise<void> {
    if (this.#isLoaded) return
    for (const { key, value } of await this.#keyValue.list(PREFIX, DAYS_MAX)) {
      const { ids } = members(value)
      const day = Number(key.slice(PREFIX.length))
      if (!Number.isSafeInteger(day) || typeof ids !== 'string') continue
      const kept = this.#days.get(day) ?? new Set()
      this.#days.set(day, new Set([...ids.split(' ').filter((id) => id !== ''), ...kept]))
    }
    this.#isLoaded = true
  }

  has(id: string, atSecs: number): boolean {
    return this.#days.get(dayOf(atSecs))?.has(short(id)) ?? false
  }

  /** Remembers the id of a message that was written at `atSecs`. */
  add(id: string, atSecs: number): void {
    const day = dayOf(atSecs)
    const ids = this.#days.get(day) ?? new Set()
    this.#days.set(day, ids)
    ids.add(short(id))
    for (const oldest of ids) {
      if (ids.size <= IDS_OF_DAY_MAX) break
      ids.delete(oldest)
    }
    this.#dirty.add(day)
  }

  /** Forgets messages that were written before `atSecs`: they are not accepted any more. */
  forgetBefore(atSecs: number): void {
    for (const [day, ids] of this.#days) {
      if (day >= dayOf(atSecs)) continue
      ids.clear()
      this.#dirty.add(day)
    }
  }

  /** Stores what has changed. After a failed write the next call tries again. */
  flush(): Promise<void> {
    const write = (): Promise<void> => this.#write()
    this.#written = this.#written.then(write, write)
    return this.#written
  }

  async #write(): Promise<void> {
    if (!this.#isLoaded) return
    for (const day of [...this.#dirty]) {
      const ids = this.#days.get(day)
      this.#dirty.delete(day)
      try {
        if (ids && ids.size > 0) await this.#keyValue.set(keyOf(day), { ids: [...ids].join(' ') })
        else await this.#keyValue.delete(keyOf(day))
      } catch (error) {
        this.#dirty.add(day)
        throw error
      }
      if (ids?.size === 0 && !this.#dirty.has(day)) this.#days.delete(day)
    }
  }
}

const dayOf = (atSecs: number): number => Math.floor(atSecs / DAY_SECS)

const keyOf = (day: number): string => `${PREFIX}${day}`

const short = (id: string): string => Buffer.from(id, 'hex').subarray(0, ID_BYTES).toString('base64url')

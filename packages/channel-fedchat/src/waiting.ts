/** Encrypted events whose key has not arrived. They wait in the store, and are decrypted when it arrives. */
import { members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import { sha256Hex } from '@sluice/sdk'
import type { RoomEvent } from './crypto/device.ts'
import type { Vault } from './vault.ts'

const EVENTS = 'event/'
const EVENTS_MAX = 1000
const DAY_MS = 86_400_000
const AGE_MS_MAX = 7 * DAY_MS

export interface WaitingEvent {
  readonly room: string
  readonly session: string
  readonly event: RoomEvent
  readonly atMs: number
}

export class Waiting {
  readonly #vault: Vault
  /** By event, the oldest first. */
  readonly #events: Map<string, WaitingEvent>

  private constructor(vault: Vault, events: Map<string, WaitingEvent>) {
    this.#vault = vault
    this.#events = events
  }

  static async load(vault: Vault): Promise<Waiting> {
    const records = [...(await vault.read(EVENTS)).values()].map((value) => parsedOrUndefined(value) as WaitingEvent)
    const valid = records.filter((one) => text(members(members(one).event).event_id) !== '').sort((a, b) => a.atMs - b.atMs)
    return new Waiting(vault, new Map(valid.map((one) => [one.event.event_id, one])))
  }

  get size(): number {
    return this.#events.size
  }

  all(): readonly WaitingEvent[] {
    return [...this.#events.values()]
  }

  /** Returns the event that was dropped to make room, if any. Durable after the next flush of the vault. */
  add(waiting: WaitingEvent): WaitingEvent | undefined {
    this.#events.set(waiting.event.event_id, waiting)
    this.#vault.put(nameOf(waiting.event.event_id), waiting)
    const [oldest] = this.#events.values()
    if (!oldest || this.#events.size <= EVENTS_MAX) return undefined
    this.remove(oldest.event.event_id)
    return oldest
  }

  remove(event: string): void {
    if (this.#events.delete(event)) this.#vault.set(nameOf(event), undefined)
  }

  /** Removes and returns the events that have waited for a week. */
  takeExpired(nowMs: number): readonly WaitingEvent[] {
    const expired = this.all().filter(({ atMs }) => nowMs - atMs > AGE_MS_MAX)
    for (const { event } of expired) this.remove(event.event_id)
    return expired
  }
}

const nameOf = (event: string): string => `${EVENTS}${sha256Hex(event).slice(0, 32)}`

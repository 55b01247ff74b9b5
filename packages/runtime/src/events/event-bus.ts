/** The event bus: numbers every event, keeps the newest ones for clients that resume, and passes each to all subscribers. */
import type { Clock, EventEnvelope, Events, Role, SluiceEvent } from '@sluice/sdk'
import { type HideSecrets, noSecrets } from '../hide-secrets.ts'
import type { EventRelay, RelayedEvent } from './event-relay.ts'

/** An event with its JSON, which is made once for all subscribers. */
export interface BusEvent {
  readonly seq: number
  readonly envelope: EventEnvelope
  /** The envelope as one line of JSON. */
  readonly json: string
  /** The device that owns the event, as in `Events.emit`. */
  readonly owner: string | null
  /** True for an event of another process, which reports it to its own observers and log. */
  readonly isForeign: boolean
  /** The same event as operators see it who do not own it; absent: they see the event itself. */
  readonly outline?: BusEvent
}

/** The reader of events: a caller with its role, or null for the daemon itself, which sees everything. */
export type Reader = { readonly role: Role; readonly owner: string } | null

/** The event as this reader may see it: a client sees its own events only. */
export function shownTo(reader: Reader, event: BusEvent): BusEvent | undefined {
  if (reader === null || reader.owner === event.owner) return event
  return reader.role === 'operator' ? (event.outline ?? event) : undefined
}

export interface EventBus extends Events {
  /** As `Events.emit`. `outline` is the event as operators see it who do not own it. */
  emit(event: SluiceEvent, owner?: string, outline?: SluiceEvent): void
  /** The name of this run of the daemon: the part of an event id before the dash. */
  readonly run: string
  /** The number of the newest event; 0 before the first. */
  readonly seq: number
  /**
   * Calls `receive`, which must not throw, for each event from now on: synchronously, and in the order of the events.
   * Returns an unsubscribe function.
   */
  subscribe(receive: (event: BusEvent) => void): () => void
  /**
   * The kept events after an id, oldest first. `missed` counts the events after it that are no longer kept; null when the
   * id is not valid or belongs to another run, so that the number is not known.
   */
  since(id: string): { readonly events: readonly BusEvent[]; readonly missed: number | null }
  /** The newest kept events, oldest first; with a reader, the newest of those that it may see. */
  recent(limit: number, reader?: Reader): readonly BusEvent[]
}

export interface EventBusOptions {
  readonly clock: Clock
  /** Masks secrets in every event. */
  readonly hide?: HideSecrets
  readonly run: string
  /** Exchanges events with the other processes of the store, where there are any. */
  readonly relay?: EventRelay
  /** The largest number of events that are kept for clients that resume. */
  readonly keptMax?: number
  /** The largest total size of their JSON, in UTF-16 units; the newest event is kept whatever its size. */
  readonly keptCharsMax?: number
}

/** Makes the bus. Without subscribers, an event costs its envelope and its JSON. */
export const createEventBus = (options: EventBusOptions): EventBus => new RingBus(options)

class RingBus implements EventBus {
  readonly run: string
  readonly #clock: Clock
  readonly #hide: HideSecrets
  readonly #relay: EventRelay | undefined
  readonly #keptMax: number
  readonly #keptCharsMax: number
  readonly #subscribers = new Set<(event: BusEvent) => void>()
  /** A ring: event `n` is at `(n - 1) % keptMax`, and the events from `#oldest` to `#seq` are in it. */
  readonly #kept: (BusEvent | undefined)[] = []
  #oldest = 1
  #seq = 0
  #keptChars = 0

  constructor({ clock, run, relay, hide = noSecrets, keptMax = 1024, keptCharsMax = 8 * 1024 * 1024 }: EventBusOptions) {
    this.run = run
    this.#clock = clock
    this.#hide = hide
    this.#keptMax = keptMax
    this.#keptCharsMax = keptCharsMax
    this.#relay = relay
    relay?.subscribe((relayed) => this.#add(relayed, true))
  }

  get seq(): number {
    return this.#seq
  }

  emit(event: SluiceEvent, owner?: string, outline?: SluiceEvent): void {
    const added: RelayedEvent = {
      event: this.#hide(event),
      timestamp: new Date(this.#clock.nowMs()).toISOString(),
      ...(owner !== undefined && { owner }),
      ...(outline && { outline: this.#hide(outline) }),
    }
    this.#add(added, false)
    this.#relay?.publish(added)
  }

  subscribe(receive: (event: BusEvent) => void): () => void {
    this.#subscribers.add(receive)
    return () => void this.#subscribers.delete(receive)
  }

  since(id: string): { readonly events: readonly BusEvent[]; readonly missed: number | null } {
    const number = id.startsWith(`${this.run}-`) ? id.slice(this.run.length + 1) : ''
    const after = /^\d{1,15}$/.test(number) ? Number(number) : Number.POSITIVE_INFINITY
    if (after > this.#seq) return { events: this.#from(this.#oldest), missed: null }
    return { events: this.#from(after + 1), missed: Math.max(0, this.#oldest - 1 - after) }
  }

  recent(limit: number, reader: Reader = null): readonly BusEvent[] {
    if (reader === null) return this.#from(this.#seq - limit + 1)
    return this.#from(this.#oldest)
      .flatMap((event) => shownTo(reader, event) ?? [])
      .slice(-limit)
  }

  #add({ event, timestamp, owner, outline }: RelayedEvent, isForeign: boolean): void {
    const seq = this.#seq + 1
    const busEvent = (shown: SluiceEvent): BusEvent => {
      const envelope = { id: `${this.run}-${seq}`, timestamp, ...shown } as EventEnvelope
      return { seq, envelope, json: JSON.stringify(envelope), owner: owner ?? null, isForeign }
    }
    const added: BusEvent = { ...busEvent(event), ...(outline && { outline: busEvent(outline) }) }
    this.#seq = seq
    this.#keep(added)
    for (const receive of this.#subscribers) receive(added)
  }

  #keep(event: BusEvent): void {
    if (event.seq - this.#oldest >= this.#keptMax) this.#dropOldest()
    this.#kept[(event.seq - 1) % this.#keptMax] = event
    this.#keptChars += event.json.length
    while (this.#keptChars > this.#keptCharsMax && this.#oldest < event.seq) this.#dropOldest()
  }

  #dropOldest(): void {
    const index = (this.#oldest - 1) % this.#keptMax
    this.#keptChars -= this.#kept[index]?.json.length ?? 0
    this.#kept[index] = undefined
    this.#oldest += 1
  }

  /** The kept events from this number on. */
  #from(first: number): readonly BusEvent[] {
    const events: BusEvent[] = []
    for (let number = Math.max(first, this.#oldest); number <= this.#seq; number++) {
      const event = this.#kept[(number - 1) % this.#keptMax]
      if (event) events.push(event)
    }
    return events
  }
}

/**
 * The event bus: numbers every event, keeps the newest ones for clients that resume, and passes each to all subscribers. In a cluster the
 * nodes share one log, which numbers their events: subscribers of every node get all events in the same order and with the same ids.
 */
import {
  AppError,
  type Clock,
  type EventEnvelope,
  type EventLog,
  type Events,
  type LoggedEvent,
  type Role,
  type SluiceEvent,
} from '@sluice/sdk'
import { type HideSecrets, noSecrets } from '../hide-secrets.ts'

/** An event with its JSON, which is made once for all subscribers. */
export interface BusEvent {
  readonly seq: number
  readonly envelope: EventEnvelope
  /** The envelope as one line of JSON. */
  readonly json: string
  /** The device that owns the event, as in `Events.emit`. */
  readonly owner: string | null
  /** The same event as operators see it who do not own it; absent: they see the event itself. */
  readonly outline?: BusEvent
}

/** The reader of events: a caller with its role, or null for the daemon itself, which sees everything. */
export type Reader = { readonly role: Role; readonly owner: string } | null

const RETRY_AFTER_SECS = 5
/**
 * How far the number of a client may be ahead of a node that has not read the newest events yet. A log that was lost starts over at the
 * time in microseconds, so this is 10 minutes. A number that is further ahead belongs to another log.
 */
const AHEAD_MAX = 600_000_000

/** The event as this reader may see it: a client sees its own events only. */
export function shownTo(reader: Reader, event: BusEvent): BusEvent | undefined {
  if (reader === null || reader.owner === event.owner) return event
  return reader.role === 'operator' ? (event.outline ?? event) : undefined
}

export interface EventBus extends Events {
  /** As `Events.emit`. `outline` is the event as operators see it who do not own it. */
  emit(event: SluiceEvent, owner?: string, outline?: SluiceEvent): void
  /** Emits an event and resolves to its id. Rejects with `unavailable` when the nodes of a cluster cannot share it now. */
  add(event: SluiceEvent): Promise<string>
  /** The part of an event id before the dash: the name of this run of the daemon, or of its cluster. */
  readonly run: string
  /** The number of the newest event; 0 before the first. */
  readonly seq: number
  /** Calls `receive`, which must not throw, for each event that this process emits, at once. */
  observe(receive: (event: SluiceEvent) => void): void
  /**
   * Calls `receive`, which must not throw, for each event from now on, in the order of their ids; without a cluster, within `emit`.
   * `onGap` is called where events are missing, with their number, or null when it is not known. Returns an unsubscribe function.
   * In a cluster, the first subscriber of a node may also get events of the last second.
   */
  subscribe(receive: (event: BusEvent) => void, onGap?: (missed: number | null) => void): () => void
  /** Begins to follow the events of all nodes. Without a cluster, it does nothing. */
  start(): Promise<void>
  /** Resolves once the bus has the events of other nodes, which it reads once a second while it has no subscriber. Never rejects. */
  catchUp(): Promise<void>
  /**
   * The kept events after an id, oldest first. `missed` counts the events after it that are not kept; null when the id is not valid or
   * belongs to another run, or to a database that has lost its events since, so that the number is not known. `ahead` is present when
   * another node of the cluster has given this event before this one has it: the number up to which later events are known to the client.
   */
  since(id: string): { readonly events: readonly BusEvent[]; readonly missed: number | null; readonly ahead?: number }
  /** The newest kept events, oldest first; with a reader, the newest ones that it may see. */
  recent(limit: number, reader?: Reader): readonly BusEvent[]
}

export interface EventBusOptions {
  readonly clock: Clock
  /** Masks secrets in every event. */
  readonly hide?: HideSecrets
  readonly run: string
  /** The events of all nodes, where the daemon is one of a cluster; `run` is then the name of the cluster. */
  readonly shared?: EventLog | undefined
  /** The largest number of events that are kept for clients that resume. */
  readonly keptMax?: number
  /** The largest total size of their JSON, in UTF-16 units; the newest event is kept whatever its size. */
  readonly keptCharsMax?: number
}

/** Makes the bus. Without subscribers, an event costs its envelope and its JSON. */
export const createEventBus = (options: EventBusOptions): EventBus => new RingBus(options)

/** An event before it has a number, without secrets. */
interface Emitted {
  readonly event: SluiceEvent
  /** RFC 3339. */
  readonly timestamp: string
  /** The owner and the outline, as in `EventBus.emit`. */
  readonly owner?: string
  readonly outline?: SluiceEvent
}

interface Subscriber {
  readonly receive: (event: BusEvent) => void
  readonly onGap: ((missed: number | null) => void) | undefined
}

class RingBus implements EventBus {
  readonly run: string
  readonly #clock: Clock
  readonly #hide: HideSecrets
  readonly #shared: EventLog | undefined
  readonly #keptMax: number
  readonly #keptCharsMax: number
  readonly #subscribers = new Set<Subscriber>()
  readonly #observers: ((event: SluiceEvent) => void)[] = []
  /** A ring: event `n` is at `(n - 1) % keptMax`, and the kept ones of `#oldest` to `#seq` are in it. */
  readonly #kept: (BusEvent | undefined)[] = []
  /** The number before the first one that was ever counted. */
  #base = 0
  #oldest = 1
  #seq = 0
  #keptChars = 0
  #isStarted = false

  constructor({ clock, run, shared, hide = noSecrets, keptMax = 1024, keptCharsMax = 8 * 1024 * 1024 }: EventBusOptions) {
    this.run = run
    this.#clock = clock
    this.#hide = hide
    this.#keptMax = keptMax
    this.#keptCharsMax = keptCharsMax
    this.#shared = shared
  }

  get seq(): number {
    return this.#seq
  }

  emit(event: SluiceEvent, owner?: string, outline?: SluiceEvent): void {
    this.#emit(event, owner, outline)
  }

  add(event: SluiceEvent): Promise<string> {
    return new Promise((resolve, reject) =>
      this.#emit(event, undefined, undefined, (seq) => {
        if (seq !== null) resolve(`${this.run}-${seq}`)
        else
          reject(new AppError('unavailable', 'The event cannot be shared with the other nodes now', { retryAfterSecs: RETRY_AFTER_SECS }))
      }),
    )
  }

  observe(receive: (event: SluiceEvent) => void): void {
    this.#observers.push(receive)
  }

  subscribe(receive: (event: BusEvent) => void, onGap?: (missed: number | null) => void): () => void {
    const subscriber = { receive, onGap }
    this.#subscribers.add(subscriber)
    return () => void this.#subscribers.delete(subscriber)
  }

  async start(): Promise<void> {
    const onStart = ({ seq, base }: { readonly seq: number; readonly base: number }): void => this.#restart(seq, base)
    const onEvents = (events: readonly LoggedEvent[]): void => {
      for (const { seq, text } of events) this.#keep(JSON.parse(text) as Emitted, seq)
    }
    await this.#shared?.follow({ onStart, onEvents, isWatched: () => this.#subscribers.size > 0 }, this.#keptMax)
  }

  async catchUp(): Promise<void> {
    await this.#shared?.catchUp()
  }

  since(id: string): ReturnType<EventBus['since']> {
    const number = id.startsWith(`${this.run}-`) ? id.slice(this.run.length + 1) : ''
    const after = /^\d{1,16}$/.test(number) ? Number(number) : Number.POSITIVE_INFINITY
    if (this.#shared && after > this.#seq && after - this.#seq <= AHEAD_MAX) return { events: [], missed: 0, ahead: after }
    if (after > this.#seq || after < this.#base) return { events: this.#from(this.#oldest), missed: null }
    const events = this.#from(after + 1)
    return { events, missed: this.#seq - after - events.length }
  }

  recent(limit: number, reader: Reader = null): readonly BusEvent[] {
    if (reader === null && !this.#shared) return this.#from(this.#seq - limit + 1)
    const kept = this.#from(this.#oldest).flatMap((event) => shownTo(reader, event) ?? [])
    return limit > 0 ? kept.slice(-limit) : []
  }

  #emit(event: SluiceEvent, owner?: string, outline?: SluiceEvent, stored?: (seq: number | null) => void): void {
    const emitted: Emitted = {
      event: this.#hide(event),
      timestamp: new Date(this.#clock.nowMs()).toISOString(),
      ...(owner !== undefined && { owner }),
      ...(outline && { outline: this.#hide(outline) }),
    }
    for (const observe of this.#observers) observe(emitted.event)
    if (this.#shared) {
      this.#shared.append(JSON.stringify(emitted), stored)
      return
    }
    const seq = this.#seq + 1
    this.#keep(emitted, seq)
    stored?.(seq)
  }

  /** Forgets the kept events: the log has no number after this one yet. */
  #restart(seq: number, base: number): void {
    this.#kept.length = 0
    this.#keptChars = 0
    this.#base = base
    this.#seq = seq
    this.#oldest = seq + 1
    if (this.#isStarted) this.#reportGap(null)
    this.#isStarted = true
  }

  #reportGap(missed: number | null): void {
    for (const { onGap } of this.#subscribers) onGap?.(missed)
  }

  #keep({ event, timestamp, owner, outline }: Emitted, seq: number): void {
    const busEvent = (shown: SluiceEvent): BusEvent => {
      const envelope = { id: `${this.run}-${seq}`, timestamp, ...shown } as EventEnvelope
      return { seq, envelope, json: JSON.stringify(envelope), owner: owner ?? null }
    }
    const added: BusEvent = { ...busEvent(event), ...(outline && { outline: busEvent(outline) }) }
    const missed = seq - this.#seq - 1
    if (missed > 0) this.#reportGap(missed)
    while (seq - this.#oldest >= this.#keptMax) this.#dropOldest()
    this.#seq = seq
    this.#kept[(seq - 1) % this.#keptMax] = added
    this.#keptChars += added.json.length
    while (this.#keptChars > this.#keptCharsMax && this.#oldest < seq) this.#dropOldest()
    for (const { receive } of this.#subscribers) receive(added)
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

/** The one producer of events: numbers them, keeps the last ones for resuming, hands each to every subscriber (§6). */
import type { Clock, EventEnvelope, Events, Role, SluiceEvent } from '@sluice/sdk'
import { type HideSecrets, noSecrets } from '../hide-secrets.ts'

/** An event with its JSON, made once however many subscribers there are. */
export interface BusEvent {
  readonly seq: number
  readonly envelope: EventEnvelope
  /** The envelope as one line of JSON. */
  readonly json: string
  /** The device whose event it is, as in `Events.emit`. */
  readonly owner: string | null
  /** The same event as operators see it who are not its owner; absent: as it is. */
  readonly outline?: BusEvent
}

/** Who follows events: a caller and its role, or null for the daemon itself, which sees everything. */
export type Reader = { readonly role: Role; readonly owner: string } | null

/** The event as this reader may see it: a client sees its own events only. */
export function shownTo(reader: Reader, event: BusEvent): BusEvent | undefined {
  if (reader === null || reader.owner === event.owner) return event
  return reader.role === 'operator' ? (event.outline ?? event) : undefined
}

export interface EventBus extends Events {
  /** As `Events.emit`; `outline` is the event as operators see it who are not its owner. */
  emit(event: SluiceEvent, owner?: string, outline?: SluiceEvent): void
  /** Names this run of the daemon; the part of an event id before the dash. */
  readonly run: string
  /** The number of the newest event; 0 before the first. */
  readonly seq: number
  /** Calls `receive`, which must not throw, for each event from now on, synchronously, in order. Returns the way out. */
  subscribe(receive: (event: BusEvent) => void): () => void
  /**
   * The kept events after an id, oldest first. `missed` counts those no longer kept; null when the id is of another run
   * or makes no sense, so that nobody can tell.
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
  /** How many events are kept for resuming. */
  readonly keptMax?: number
  /** How much JSON of them is kept, in UTF-16 units; the newest event is kept whatever its size. */
  readonly keptCharsMax?: number
}

/** Makes the bus. Emitting with no subscriber costs an envelope and its JSON. */
export function createEventBus({
  clock,
  run,
  hide = noSecrets,
  keptMax = 1024,
  keptCharsMax = 8 * 1024 * 1024,
}: EventBusOptions): EventBus {
  const subscribers = new Set<(event: BusEvent) => void>()
  /** Event `n` is at `(n - 1) % keptMax`; those from `oldest` to `seq` are kept. */
  const kept: (BusEvent | undefined)[] = []
  let oldest = 1
  let seq = 0
  let keptChars = 0

  const dropOldest = () => {
    const slot = (oldest - 1) % keptMax
    keptChars -= kept[slot]?.json.length ?? 0
    kept[slot] = undefined
    oldest += 1
  }
  const keep = (event: BusEvent) => {
    if (event.seq - oldest >= keptMax) dropOldest()
    kept[(event.seq - 1) % keptMax] = event
    keptChars += event.json.length
    while (keptChars > keptCharsMax && oldest < event.seq) dropOldest()
  }
  const from = (first: number): readonly BusEvent[] => {
    const events: BusEvent[] = []
    for (let number = Math.max(first, oldest); number <= seq; number++) {
      const event = kept[(number - 1) % keptMax]
      if (event) events.push(event)
    }
    return events
  }

  return {
    run,
    get seq() {
      return seq
    },
    emit(event, owner, outline) {
      const id = `${run}-${seq + 1}`
      const timestamp = new Date(clock.nowMs()).toISOString()
      const made = (content: SluiceEvent): BusEvent => {
        const envelope = { id, timestamp, ...hide(content) } as EventEnvelope
        return { seq: seq + 1, envelope, json: JSON.stringify(envelope), owner: owner ?? null }
      }
      const busEvent: BusEvent = { ...made(event), ...(outline && { outline: made(outline) }) }
      seq += 1
      keep(busEvent)
      for (const receive of subscribers) receive(busEvent)
    },
    subscribe(receive) {
      subscribers.add(receive)
      return () => void subscribers.delete(receive)
    },
    since(id) {
      const number = id.startsWith(`${run}-`) ? id.slice(run.length + 1) : ''
      const after = /^\d{1,15}$/.test(number) ? Number(number) : Number.POSITIVE_INFINITY
      if (after > seq) return { events: from(oldest), missed: null }
      return { events: from(after + 1), missed: Math.max(0, oldest - 1 - after) }
    },
    recent: (limit, reader = null) =>
      reader === null
        ? from(seq - limit + 1)
        : from(oldest)
            .flatMap((event) => shownTo(reader, event) ?? [])
            .slice(-limit),
  }
}

/** The one producer of events: numbers them, keeps the last ones for resuming, hands each to every subscriber (§6). */
import type { Clock, EventEnvelope, Events, SluiceEvent } from '@sluice/sdk'

/** An event with its frames, made once however many subscribers there are. */
export interface BusEvent {
  readonly seq: number
  readonly envelope: EventEnvelope
  /** The envelope as one line of JSON. */
  readonly json: string
}

export interface EventBus extends Events {
  /** Names this run of the daemon; the part of an event id before the dash. */
  readonly run: string
  /** The number of the newest event; 0 before the first. */
  readonly seq: number
  /** Calls `receive` for each event from now on, synchronously, in order. Returns the way out. */
  subscribe(receive: (event: BusEvent) => void): () => void
  /**
   * The kept events after an id, oldest first. `missed` counts those no longer kept; null when the id is of another run
   * or makes no sense, so that nobody can tell.
   */
  since(id: string): { readonly events: readonly BusEvent[]; readonly missed: number | null }
  /** The kept events, oldest first. */
  recent(limit: number): readonly BusEvent[]
}

export interface EventBusOptions {
  readonly clock: Clock
  /** How many events are kept for resuming. */
  readonly keptMax?: number
  readonly run: string
}

/** Makes the bus. Emitting with no subscriber costs an envelope and its JSON. */
export function createEventBus({ clock, keptMax = 1024, run }: EventBusOptions): EventBus {
  const kept: BusEvent[] = []
  const subscribers = new Set<(event: BusEvent) => void>()
  let seq = 0
  const recent = (limit: number): readonly BusEvent[] => {
    const count = Math.min(limit, kept.length)
    const ordered = Array.from({ length: count }, (_, index) => kept[(seq - count + index) % keptMax])
    return ordered.filter((event) => event !== undefined)
  }
  return {
    run,
    get seq() {
      return seq
    },
    emit(event: SluiceEvent) {
      const id = `${run}-${seq + 1}`
      const envelope = { id, timestamp: new Date(clock.nowMs()).toISOString(), ...event } as EventEnvelope
      const busEvent: BusEvent = { seq: seq + 1, envelope, json: JSON.stringify(envelope) }
      kept[seq % keptMax] = busEvent
      seq += 1
      for (const receive of subscribers) receive(busEvent)
    },
    subscribe(receive) {
      subscribers.add(receive)
      return () => void subscribers.delete(receive)
    },
    since(id) {
      const number = id.startsWith(`${run}-`) ? Number(id.slice(run.length + 1)) : Number.NaN
      if (!Number.isSafeInteger(number) || number < 0 || number > seq) return { events: recent(keptMax), missed: null }
      const events = recent(seq - number)
      return { events, missed: seq - number - events.length }
    },
    recent,
  }
}

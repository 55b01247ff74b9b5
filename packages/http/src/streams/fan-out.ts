/** Hands each event to every subscriber of one kind of stream. A slow subscriber misses events, and slows down no other. */

import { ByteBuffer } from '@sluice/kit'
import { type BusEvent, type EventBus, type Reader, shownTo } from '@sluice/runtime'
import type { Clock } from '@sluice/sdk'
import type { Framing } from './frames.ts'
import type { Subscription } from './subscription.ts'

/** A subscriber with more unread bytes gets no further event until it has caught up; a replay waits for it. */
export const BUFFERED_BYTES_MAX = 1024 * 1024
/** A subscriber has caught up once it has at most this many unread bytes. */
const CAUGHT_UP_BYTES = 64 * 1024
/** A subscriber that takes longer to catch up is disconnected. */
export const STALLED_MS_MAX = 60_000
/**
 * A write to a subscriber costs a system call. After a flush of n ms, events wait for 2 n ms and then leave together, so that streams take
 * a third of the event loop at most. An event after a pause is written at once.
 */
const REST_FACTOR = 2
/** Timers are not more exact. */
const REST_MS_MIN = 1
const REST_MS_MAX = 100
/** The events, and their characters of JSON, that wait at most. */
const WAITING_EVENTS_MAX = 256
const WAITING_CHARS_MAX = 256 * 1024
/** The interval in which lagging subscribers are checked while no event is emitted. */
const CHECK_EVERY_MS = 1000

/** The connection to one subscriber. Writing to a closed one has no effect. */
export interface Sink {
  /** The number of bytes that were written and not yet read by the subscriber. */
  bufferedBytes(): number
  write(frame: Buffer): void
  /** Closes the connection at once. */
  destroy(): void
}

/** A subscriber of a fan-out. An unsubscribe function would take 104 bytes more. */
export interface Member {
  readonly sink: Sink
}

export interface FanOut {
  /**
   * Sends the events since `lastEventId`, after a gap if some of them are not kept any more, then every later event, until the returned
   * member is removed.
   */
  add(sink: Sink, subscription: Subscription): Member
  remove(member: Member): void
  /** Writes a frame to every subscriber that does not lag. */
  writeAll(frame: Buffer): void
  /** Writes the waiting events now. */
  flush(): void
}

export interface FanOutOptions {
  readonly bus: EventBus
  readonly clock: Clock
  readonly framing: Framing
  /** Called with the number of events that a lagging subscriber misses. */
  readonly onDropped: (events: number) => void
}

class Subscriber implements Member {
  readonly sink: Sink
  readonly #reader: Reader
  readonly #types: ReadonlySet<string> | null
  /** The number of events missed since it began to lag; 0 means that it does not lag. */
  missed = 0
  /** While a replay waits: the last event of it. Later events are read from the bus once there is room. */
  replayedTo: string | null = null
  laggingSinceMs = 0
  /** Events up to this number reached it from another node of the cluster, which was ahead of this one. */
  knownTo = 0

  constructor(sink: Sink, { reader, types }: Subscription) {
    this.sink = sink
    this.#reader = reader
    this.#types = types
  }

  get isBehind(): boolean {
    return this.missed > 0 || this.replayedTo !== null
  }

  get isFull(): boolean {
    return this.sink.bufferedBytes() > BUFFERED_BYTES_MAX
  }

  /** The event in the form that this subscriber is shown; undefined if it is not shown at all. */
  formOf(event: BusEvent): BusEvent | undefined {
    if (event.seq <= this.knownTo) return undefined
    return this.#types === null || this.#types.has(event.envelope.type) ? shownTo(this.#reader, event) : undefined
  }
}

/** Some events of one flush, in their order. Subscribers that are shown the same ones share the bytes. */
class Run {
  readonly #frames: readonly Buffer[]
  readonly #longer = new Map<BusEvent, Run>()
  #bytes: Buffer | undefined

  constructor(frames: readonly Buffer[] = []) {
    this.#frames = frames
  }

  get length(): number {
    return this.#frames.length
  }

  get bytes(): Buffer {
    this.#bytes ??= joined(this.#frames)
    return this.#bytes
  }

  /** Returns the run with one more event. `frame` is called for the first subscriber only. */
  with(event: BusEvent, frame: (event: BusEvent) => Buffer): Run {
    const known = this.#longer.get(event) ?? new Run([...this.#frames, frame(event)])
    this.#longer.set(event, known)
    return known
  }
}

/** Returns a single frame itself. */
function joined(frames: readonly Buffer[]): Buffer {
  const all = new ByteBuffer()
  for (const frame of frames) all.append(frame)
  return all.bytes()
}

export function createFanOut(options: FanOutOptions): FanOut {
  return new BusFanOut(options)
}

class BusFanOut implements FanOut {
  readonly #options: FanOutOptions
  readonly #subscribers = new Set<Subscriber>()
  #waiting: BusEvent[] = []
  #waitingChars = 0
  #isResting = false
  #isChecking = false

  /** Unsubscribes from the bus, which reads the events of other nodes at once only while there is a subscriber. */
  #leave: (() => void) | undefined

  constructor(options: FanOutOptions) {
    this.#options = options
  }

  add(sink: Sink, subscription: Subscription): Member {
    // The new subscriber starts after the events that wait, or reads them from the bus.
    this.flush()
    const subscriber = new Subscriber(sink, subscription)
    this.#subscribers.add(subscriber)
    this.#leave ??= this.#options.bus.subscribe(
      (event) => this.#emit(event),
      (missed) => this.#gap(missed),
    )
    if (subscription.lastEventId !== null) this.#replay(subscriber, subscription.lastEventId)
    return subscriber
  }

  remove(member: Member): void {
    this.#subscribers.delete(member as Subscriber)
    if (this.#subscribers.size > 0) return
    this.#leave?.()
    this.#leave = undefined
  }

  writeAll(frame: Buffer): void {
    for (const { missed, sink } of this.#subscribers) if (missed === 0) sink.write(frame)
  }

  #emit(event: BusEvent): void {
    this.#waiting.push(event)
    this.#waitingChars += event.json.length
    const isFull = this.#waiting.length >= WAITING_EVENTS_MAX || this.#waitingChars >= WAITING_CHARS_MAX
    if (isFull || !this.#isResting) this.flush()
  }

  /** Events of the cluster are missing for all. Who lags gets a gap anyway, and a replay finds it in the bus. */
  #gap(missed: number | null): void {
    this.flush()
    this.writeAll(this.#options.framing.gap(missed))
  }

  flush(): void {
    if (this.#waiting.length === 0) return
    const { clock, framing } = this.#options
    const events = this.#waiting
    this.#waiting = []
    this.#waitingChars = 0
    const startedMs = clock.monotonicMs()
    // Most events have one form for all subscribers that may see them: each form is framed once.
    const frames = new Map<BusEvent, Buffer>()
    const frame = (form: BusEvent): Buffer => {
      const bytes = frames.get(form) ?? framing.event(form)
      frames.set(form, bytes)
      return bytes
    }
    const nothing = new Run()
    for (const subscriber of this.#subscribers) {
      if (subscriber.replayedTo !== null) continue
      let run = nothing
      for (const event of events) {
        const form = subscriber.formOf(event)
        if (form) run = run.with(form, frame)
      }
      if (run === nothing) continue
      if (this.#hasRoom(subscriber)) subscriber.sink.write(run.bytes)
      else this.#miss(subscriber, run.length)
    }
    const restMs = (clock.monotonicMs() - startedMs) * REST_FACTOR
    if (restMs >= REST_MS_MIN && !this.#isResting) void this.#rest(Math.min(restMs, REST_MS_MAX))
  }

  async #rest(ms: number): Promise<void> {
    this.#isResting = true
    await this.#options.clock.sleep(ms)
    this.#isResting = false
    this.flush()
  }

  #hasRoom(subscriber: Subscriber): boolean {
    return subscriber.missed > 0 ? this.#catchUp(subscriber) : !subscriber.isFull
  }

  #miss(subscriber: Subscriber, events: number): void {
    if (subscriber.missed === 0) this.#startLagging(subscriber)
    subscriber.missed += events
    this.#options.onDropped(events)
  }

  /** Returns true once a lagging subscriber has room again. It then gets a gap with the number of events that it missed. */
  #catchUp(subscriber: Subscriber): boolean {
    if (subscriber.sink.bufferedBytes() > CAUGHT_UP_BYTES) return false
    if (subscriber.replayedTo !== null) {
      this.#replay(subscriber, subscriber.replayedTo)
      return subscriber.replayedTo === null
    }
    subscriber.sink.write(this.#options.framing.gap(subscriber.missed))
    subscriber.missed = 0
    return true
  }

  /** Sends the events after this one, as far as there is room. */
  #replay(subscriber: Subscriber, after: string): void {
    const { bus, framing } = this.#options
    const { events, missed, ahead = 0 } = bus.since(after)
    subscriber.knownTo = Math.max(subscriber.knownTo, ahead)
    const last = events.at(-1)
    subscriber.replayedTo = null
    if (missed !== 0) subscriber.sink.write(framing.gap(missed))
    for (const event of events) {
      const form = subscriber.formOf(event)
      if (form) subscriber.sink.write(framing.event(form))
      if (event === last || !subscriber.isFull) continue
      subscriber.replayedTo = event.envelope.id
      this.#startLagging(subscriber)
      return
    }
  }

  #startLagging(subscriber: Subscriber): void {
    subscriber.laggingSinceMs = this.#options.clock.monotonicMs()
    if (!this.#isChecking) void this.#checkLagging()
  }

  /** Runs until no subscriber lags. Disconnects a subscriber that takes too long to catch up. */
  async #checkLagging(): Promise<void> {
    const { clock } = this.#options
    this.#isChecking = true
    for (let lagging = [...this.#subscribers]; lagging.length > 0; ) {
      await clock.sleep(CHECK_EVERY_MS)
      // A subscriber whose replay continues must not get the events that wait twice.
      this.flush()
      lagging = [...this.#subscribers].filter((subscriber) => subscriber.isBehind && !this.#catchUp(subscriber))
      for (const subscriber of lagging) {
        if (clock.monotonicMs() - subscriber.laggingSinceMs < STALLED_MS_MAX) continue
        this.remove(subscriber)
        subscriber.sink.destroy()
      }
    }
    this.#isChecking = false
  }
}

/** Hands each event to every subscriber of one kind of stream, each with a bounded buffer of its own (§6). */

import { type BusEvent, type EventBus, type Reader, shownTo } from '@sluice/runtime'
import type { Clock } from '@sluice/sdk'
import type { Framing } from './frames.ts'

/** A subscriber that has more than this still to take is given no further event until it catches up; a replay waits for it. */
export const BUFFERED_BYTES_MAX = 1024 * 1024
/** It has caught up once it is down to this. */
const CAUGHT_UP_BYTES = 64 * 1024
/** One that takes longer than this to catch up is given up. */
export const STALLED_MS_MAX = 60_000
/** How often those who lag are looked at while nothing is emitted. */
const LOOK_EVERY_MS = 1000

/** The way to one subscriber. Writing to one that is gone does nothing. */
export interface Sink {
  /** What it was given and has not taken yet. */
  bufferedBytes(): number
  write(frame: Buffer): void
  /** Cuts the connection at once. */
  destroy(): void
}

export interface Subscription {
  readonly reader: Reader
  /** The last event the subscriber has seen; null: start with what comes. */
  readonly lastEventId: string | null
  /** The types it wants; null: all. */
  readonly types: ReadonlySet<string> | null
}

export interface FanOut {
  /**
   * Gives the subscriber what it missed since `lastEventId`, with a gap before it if not everything is left, then every
   * event to come. Returns the way out.
   */
  add(sink: Sink, subscription: Subscription): () => void
  /** Writes something to everybody who does not lag. */
  writeAll(frame: Buffer): void
}

export interface FanOutOptions {
  readonly bus: EventBus
  readonly clock: Clock
  readonly framing: Framing
  /** Called for each event that a subscriber is not given because it lags. */
  readonly onDropped: () => void
}

interface Subscriber {
  readonly sink: Sink
  readonly reader: Reader
  readonly types: ReadonlySet<string> | null
  /** Events it was not given since it began to lag; 0: it does not lag. */
  missed: number
  /** While a replay waits: the last event of it. What came after is read from the bus once there is room. */
  replayedTo: string | null
  laggingSinceMs: number
}

export function createFanOut({ bus, clock, framing, onDropped }: FanOutOptions): FanOut {
  const subscribers = new Set<Subscriber>()
  let isLooking = false

  const isBehind = ({ missed, replayedTo }: Subscriber): boolean => missed > 0 || replayedTo !== null
  /** The event as this subscriber is to get it; undefined: not at all. */
  const wanted = ({ types, reader }: Subscriber, event: BusEvent): BusEvent | undefined =>
    types === null || types.has(event.envelope.type) ? shownTo(reader, event) : undefined

  /** True once a subscriber that lagged has room again; by then it was told how much it missed. */
  const hasCaughtUp = (subscriber: Subscriber): boolean => {
    if (subscriber.sink.bufferedBytes() > CAUGHT_UP_BYTES) return false
    if (subscriber.replayedTo !== null) {
      replay(subscriber, subscriber.replayedTo)
      return subscriber.replayedTo === null
    }
    subscriber.sink.write(framing.gap(subscriber.missed))
    subscriber.missed = 0
    return true
  }

  const hasRoom = (subscriber: Subscriber): boolean =>
    subscriber.missed > 0 ? hasCaughtUp(subscriber) : subscriber.sink.bufferedBytes() <= BUFFERED_BYTES_MAX

  const lookAtLaggards = async () => {
    isLooking = true
    for (let laggards = [...subscribers]; laggards.length > 0; ) {
      await clock.sleep(LOOK_EVERY_MS)
      laggards = [...subscribers].filter((subscriber) => isBehind(subscriber) && !hasCaughtUp(subscriber))
      for (const subscriber of laggards) {
        if (clock.monotonicMs() - subscriber.laggingSinceMs < STALLED_MS_MAX) continue
        subscribers.delete(subscriber)
        subscriber.sink.destroy()
      }
    }
    isLooking = false
  }

  const lag = (subscriber: Subscriber) => {
    subscriber.laggingSinceMs = clock.monotonicMs()
    if (!isLooking) void lookAtLaggards()
  }

  const miss = (subscriber: Subscriber) => {
    if (subscriber.missed++ === 0) lag(subscriber)
    onDropped()
  }

  /** What came after an event, as far as there is room. */
  const replay = (subscriber: Subscriber, after: string) => {
    const { sink } = subscriber
    const { events, missed } = bus.since(after)
    const last = events.at(-1)
    subscriber.replayedTo = null
    if (missed !== 0) sink.write(framing.gap(missed))
    for (const event of events) {
      const { id } = event.envelope
      const shown = wanted(subscriber, event)
      if (shown) sink.write(framing.event(shown))
      if (event === last || sink.bufferedBytes() <= BUFFERED_BYTES_MAX) continue
      subscriber.replayedTo = id
      return lag(subscriber)
    }
  }

  const give = (subscriber: Subscriber, frame: Buffer) => {
    if (hasRoom(subscriber)) subscriber.sink.write(frame)
    else miss(subscriber)
  }

  bus.subscribe((event) => {
    if (subscribers.size === 0) return
    // Most events look the same to everybody who may see them: each look of one is framed once.
    const frames = new Map<BusEvent, Buffer>()
    for (const subscriber of subscribers) {
      const shown = subscriber.replayedTo === null ? wanted(subscriber, event) : undefined
      if (!shown) continue
      const frame = frames.get(shown) ?? framing.event(shown)
      frames.set(shown, frame)
      give(subscriber, frame)
    }
  })

  return {
    add(sink, { lastEventId, types, reader }) {
      const subscriber: Subscriber = { sink, types, reader, missed: 0, replayedTo: null, laggingSinceMs: 0 }
      subscribers.add(subscriber)
      if (lastEventId !== null) replay(subscriber, lastEventId)
      return () => void subscribers.delete(subscriber)
    },
    writeAll(frame) {
      for (const subscriber of subscribers) if (subscriber.missed === 0) subscriber.sink.write(frame)
    },
  }
}

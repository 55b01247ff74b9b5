/** Joins the parts of events that the platform sends in several frames. */
import { ByteBuffer } from '@sluice/kit'
import type { Clock } from '@sluice/sdk'

/** One frame of an event. */
export interface Part {
  readonly messageId: string
  /** How many parts the event has, and the position of this one, from 0. */
  readonly sum: number
  readonly seq: number
  readonly payload: Uint8Array
}

/** The most parts of one event, events that are incomplete, and bytes of incomplete events. */
export const PARTS_MAX = 64
export const EVENTS_MAX = 100
export const BYTES_MAX = 16 * 1024 * 1024
/** An incomplete event is dropped after this time; the platform sends it again, because it was not acknowledged. */
const KEPT_MS = 300_000

interface Incomplete {
  readonly sinceMs: number
  readonly parts: (Uint8Array | undefined)[]
}

export class Fragments {
  readonly #clock: Clock
  readonly #incomplete = new Map<string, Incomplete>()
  #bytes = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The number of incomplete events, and of their bytes. */
  get size(): { readonly events: number; readonly bytes: number } {
    return { events: this.#incomplete.size, bytes: this.#bytes }
  }

  /** Returns the whole payload with the last missing part, and undefined before. Throws `RangeError` for a part that cannot belong to an event. */
  add({ messageId, sum, seq, payload }: Part): Uint8Array | undefined {
    const isPart = Number.isInteger(sum) && Number.isInteger(seq) && sum > 0 && sum <= PARTS_MAX && seq >= 0 && seq < sum
    if (!isPart) throw new RangeError(`part ${seq} of ${sum} is not possible`)
    if (sum === 1) return payload
    this.#dropOld()
    const event = this.#incomplete.get(messageId) ?? {
      sinceMs: this.#clock.monotonicMs(),
      parts: new Array<undefined>(sum).fill(undefined),
    }
    if (event.parts.length !== sum) throw new RangeError(`the event has ${event.parts.length} parts and not ${sum}`)
    this.#incomplete.set(messageId, event)
    this.#bytes += payload.length - (event.parts[seq]?.length ?? 0)
    event.parts[seq] = payload
    if (event.parts.every((part) => part !== undefined)) {
      this.#drop(messageId)
      const whole = new ByteBuffer()
      for (const part of event.parts) whole.append(part)
      return whole.bytes()
    }
    this.#makeRoom()
    return undefined
  }

  #dropOld(): void {
    const oldest = this.#clock.monotonicMs() - KEPT_MS
    for (const [id, { sinceMs }] of this.#incomplete) {
      if (sinceMs > oldest) return
      this.#drop(id)
    }
  }

  #makeRoom(): void {
    while (this.#incomplete.size > EVENTS_MAX || this.#bytes > BYTES_MAX) {
      const [first] = this.#incomplete.keys()
      if (first === undefined) return
      this.#drop(first)
    }
  }

  #drop(id: string): void {
    const bytes = this.#incomplete.get(id)?.parts.reduce((sum, part) => sum + (part?.length ?? 0), 0) ?? 0
    this.#bytes -= bytes
    this.#incomplete.delete(id)
  }
}

/** How far the channel has stored each conversation, and each thread that the bot has written in, kept across restarts. */
import { BoundedMap } from '@sluice/kit'
import { members } from '@sluice/kit/foreign-json'
import type { KeyValue, Logger } from '@sluice/sdk'
import { isTimestamp, later } from './timestamp.ts'

/** A conversation, or a thread in it. */
export interface Place {
  readonly channel: string
  readonly thread?: string
}

export interface Cursor extends Place {
  /** The timestamp up to which every message is durable. */
  readonly upTo: string
}

const KEY = 'cursors'
const CHANNELS_MAX = 400
const THREADS_MAX = 100

export class Cursors {
  readonly #keyValue: KeyValue
  readonly #log: Logger
  readonly #channels = new BoundedMap<string, string>(CHANNELS_MAX)
  readonly #threads = new BoundedMap<string, string>(THREADS_MAX)
  /** Positions reached while the cursors are held; undefined while they are not. */
  #held: BoundedMap<string, Cursor> | undefined
  #isLoaded = false
  #isWriting = false
  #isDirty = false

  constructor(keyValue: KeyValue, log: Logger) {
    this.#keyValue = keyValue
    this.#log = log
  }

  /** Reads the stored cursors. Until then no cursor is written. */
  async load(): Promise<void> {
    const { channels, threads } = members(await this.#keyValue.get(KEY))
    for (const [key, upTo] of [...timestampsIn(channels), ...timestampsIn(threads)]) this.#put(placeOf(key), upTo)
    this.#isLoaded = true
    if (this.#isDirty) void this.#write()
  }

  list(): readonly Cursor[] {
    return [...this.#channels.entries(), ...this.#threads.entries()].map(([key, upTo]) => ({ ...placeOf(key), upTo }))
  }

  /** Starts to follow a place after `upTo`. Does nothing if the place is followed already. */
  follow(place: Place, upTo: string): void {
    if (this.#mapOf(place).has(keyOf(place))) return
    this.#put(place, upTo)
    void this.#write()
  }

  /**
   * Records that every message of a followed place up to `upTo` is durable. A cursor never moves back, and moves only once it
   * is released.
   */
  advance(place: Place, upTo: string): void {
    const key = keyOf(place)
    if (!this.#mapOf(place).has(key)) return
    if (this.#held) {
      this.#held.set(key, { ...place, upTo: later(this.#held.get(key)?.upTo ?? '', upTo) })
      return
    }
    this.#put(place, upTo)
    void this.#write()
  }

  forget(place: Place): void {
    this.#held?.delete(keyOf(place))
    this.#mapOf(place).delete(keyOf(place))
    void this.#write()
  }

  /** Holds all cursors because earlier messages may be missing. Idempotent. */
  hold(): void {
    this.#held ??= new BoundedMap(CHANNELS_MAX + THREADS_MAX)
  }

  /** Moves the held cursors to the positions reached in the meantime. */
  release(): void {
    for (const [, { upTo, ...place }] of this.#held?.entries() ?? []) this.#put(place, upTo)
    this.#held = undefined
    void this.#write()
  }

  #mapOf({ thread }: Place): BoundedMap<string, string> {
    return thread === undefined ? this.#channels : this.#threads
  }

  /** Adds the key as the newest, so that the place that was used longest ago is dropped first. */
  #put(place: Place, upTo: string): void {
    const map = this.#mapOf(place)
    const key = keyOf(place)
    const before = map.get(key) ?? ''
    map.delete(key)
    map.set(key, later(before, upTo))
  }

  /** Runs one write at a time. After a failed write messages may arrive twice, which the inbox handles. */
  async #write(): Promise<void> {
    this.#isDirty = true
    if (!this.#isLoaded || this.#isWriting) return
    this.#isWriting = true
    while (this.#isDirty) {
      this.#isDirty = false
      const value = { channels: Object.fromEntries(this.#channels.entries()), threads: Object.fromEntries(this.#threads.entries()) }
      await this.#keyValue.set(KEY, value).catch((error: unknown) => this.#log.warn('cursors not stored', { channel: 'slack', error }))
    }
    this.#isWriting = false
  }
}

const keyOf = ({ channel, thread }: Place): string => (thread === undefined ? channel : `${channel}/${thread}`)

function placeOf(key: string): Place {
  const [channel = '', thread] = key.split('/')
  return { channel, ...(thread !== undefined && { thread }) }
}

const timestampsIn = (stored: unknown): [string, string][] =>
  Object.entries(members(stored)).filter((entry): entry is [string, string] => typeof entry[1] === 'string' && isTimestamp(entry[1]))

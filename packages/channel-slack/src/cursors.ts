/** How far each conversation we have heard from, and each thread we have written in, is handed over; kept across restarts. */
import { BoundedMap } from '@sluice/kit'
import { type Members, members } from '@sluice/kit/foreign-json'
import type { Host } from '@sluice/sdk'
import { isTimestamp, later } from './timestamp.ts'

/** A conversation, or a thread in it. */
export interface Place {
  readonly channel: string
  readonly thread?: string
}

export interface Cursor extends Place {
  /** Everything up to this message is durable. */
  readonly upTo: string
}

export interface Cursors {
  /** Reads what was kept; nothing is written before. */
  load(): Promise<void>
  list(): readonly Cursor[]
  /** Begins a cursor where there is none. */
  know(place: Place, upTo: string): void
  /** A message is durable: the cursor of its place, if it is known, moves there, never back; while held, once it is released. */
  move(place: Place, upTo: string): void
  drop(place: Place): void
  /** From now on messages may be missing, and no cursor moves past them. Idempotent. */
  hold(): void
  /** Nothing is missing any more. */
  release(): void
}

const KEY = 'cursors'
const CHANNELS_MAX = 400
const THREADS_MAX = 100

export function createCursors({ keyValue, log }: Pick<Host, 'keyValue' | 'log'>): Cursors {
  const kept = { channels: new BoundedMap<string, string>(CHANNELS_MAX), threads: new BoundedMap<string, string>(THREADS_MAX) }
  /** What is durable beyond the cursors while they are held. */
  let ahead: BoundedMap<string, Cursor> | undefined
  let isLoaded = false
  let isWriting = false
  let isDirty = false

  const mapOf = ({ thread }: Place) => (thread === undefined ? kept.channels : kept.threads)
  /** Put in last place: what was used longest ago is dropped first. */
  const put = (place: Place, upTo: string): void => {
    const map = mapOf(place)
    const key = keyOf(place)
    const before = map.get(key) ?? ''
    map.delete(key)
    map.set(key, later(before, upTo))
  }

  /** One write at a time; a cursor that could not be kept only means that messages come twice. */
  const write = async (): Promise<void> => {
    isDirty = true
    if (!isLoaded || isWriting) return
    isWriting = true
    while (isDirty) {
      isDirty = false
      const value = { channels: Object.fromEntries(kept.channels.entries()), threads: Object.fromEntries(kept.threads.entries()) }
      await keyValue.set(KEY, value).catch((error: unknown) => log.warn('how far slack was read could not be kept', { error }))
    }
    isWriting = false
  }

  return {
    async load() {
      const { channels, threads } = members(await keyValue.get(KEY))
      for (const [key, upTo] of [...timestampsIn(members(channels)), ...timestampsIn(members(threads))]) put(placeOf(key), upTo)
      isLoaded = true
      if (isDirty) void write()
    },
    list: () => [...kept.channels.entries(), ...kept.threads.entries()].map(([key, upTo]) => ({ ...placeOf(key), upTo })),
    know(place, upTo) {
      if (mapOf(place).has(keyOf(place))) return
      put(place, upTo)
      void write()
    },
    move(place, upTo) {
      if (!mapOf(place).has(keyOf(place))) return
      if (!ahead) {
        put(place, upTo)
        void write()
        return
      }
      ahead.set(keyOf(place), { ...place, upTo: later(ahead.get(keyOf(place))?.upTo ?? '', upTo) })
    },
    drop(place) {
      ahead?.delete(keyOf(place))
      mapOf(place).delete(keyOf(place))
      void write()
    },
    hold() {
      ahead ??= new BoundedMap(CHANNELS_MAX + THREADS_MAX)
    },
    release() {
      for (const [, { upTo, ...place }] of ahead?.entries() ?? []) put(place, upTo)
      ahead = undefined
      void write()
    },
  }
}

const keyOf = ({ channel, thread }: Place): string => (thread === undefined ? channel : `${channel}/${thread}`)

function placeOf(key: string): Place {
  const [channel = '', thread] = key.split('/')
  return { channel, ...(thread !== undefined && { thread }) }
}

const timestampsIn = (kept: Members): [string, string][] =>
  Object.entries(kept).filter((entry): entry is [string, string] => typeof entry[1] === 'string' && isTimestamp(entry[1]))

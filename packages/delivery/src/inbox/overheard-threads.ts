/**
 * Tells in which thread of a room a message was overheard, for platforms that report a change without the thread. It is kept below the
 * keys of the room, so that it is erased with it, in parts: a change reads one small part, however many threads and lines the room has.
 */
import { agentKey, agentOfSession, chatSessionKey, type KeyValue, sessionKeys, shardOf, sharedRoom } from '@sluice/sdk'
import * as v from 'valibot'
import { updateValue } from './update-value.ts'

const PARTS = 16
/** The most messages of one part. */
const PART_MAX = 250

const placeSchema = v.object({ id: v.string(), thread: v.string(), atMs: v.number() })
const placesSchema = v.fallback(v.array(placeSchema), [])
type Place = v.InferOutput<typeof placeSchema>

export class OverheardThreads {
  readonly #keys: KeyValue
  readonly #isRecent: (place: Pick<Place, 'atMs'>) => boolean

  /** `isRecent` tells whether a message is still kept. */
  constructor(keys: KeyValue, isRecent: (place: Pick<Place, 'atMs'>) => boolean) {
    this.#keys = keys
    this.#isRecent = isRecent
  }

  /** Resolves once the thread of a message is durable. A session without a thread is found without it. */
  async keep(session: string, { id, atMs }: Omit<Place, 'thread'>): Promise<void> {
    const thread = sharedRoom(session)?.thread
    const key = partKey(session, id)
    if (thread === undefined || key === undefined) return
    await updateValue(this.#keys, key, (value) => {
      const places = v.parse(placesSchema, value)
      if (places.some((place) => place.id === id && place.thread === thread)) return value
      const others = places.filter((place) => place.id !== id && this.#isRecent(place))
      return [...others, { id, thread, atMs }].slice(-PART_MAX)
    })
  }

  /** Resolves to the other sessions of a room in which a message may have been overheard. */
  async sessionsOf(session: string, id: string): Promise<readonly string[]> {
    const key = partKey(session, id)
    if (key === undefined) return []
    const found = v.parse(placesSchema, await this.#keys.get(key)).find((place) => place.id === id)
    return [inRoom(session), found && inRoom(session, found.thread)].flatMap((one) => (one === undefined || one === session ? [] : [one]))
  }

  /** Removes the messages of a stored part that are not kept any more. */
  async sweep({ key, value }: { readonly key: string; readonly value: unknown }): Promise<void> {
    const places = v.parse(placesSchema, value)
    const recent = places.filter(this.#isRecent)
    if (recent.length < places.length) await this.#keys.swap(key, value, recent.length > 0 ? recent : undefined)
  }
}

/** Whether a key is one of these parts. */
export const isThreadsKey = (key: string): boolean => THREADS_KEY.test(key)

const THREADS_KEY = /\0threads:\d+$/

/** Returns undefined for a session of one person. */
function partKey(session: string, id: string): string | undefined {
  const room = inRoom(session)
  return room && `${sessionKeys(room)}threads:${shardOf(id) % PARTS}`
}

/** Returns the session of a room, or of a thread of it; undefined for a session of one person. */
function inRoom(session: string, thread?: string): string | undefined {
  const room = sharedRoom(session)
  if (!room) return undefined
  const { channel, account, conversation } = room
  return agentKey(agentOfSession(session), chatSessionKey({ channel, account, conversation, ...(thread !== undefined && { thread }) }))
}

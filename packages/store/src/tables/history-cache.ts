/** Caches the summary and the newest messages of recently active sessions, so that a turn need not read and parse them again. */
import { BoundedMap } from '@sluice/kit'
import type { ModelMessage, SessionSummary } from '@sluice/sdk'
import type { Database } from '../connection/database.ts'

const SESSIONS_MAX = 1000
/** The messages kept of one session; the older half is dropped at twice this number. Older ones are read from the file. */
const MESSAGES_MAX = 128
/** The limit for all sessions together, in characters of JSON. */
const CHARS_MAX = 16 * 1024 * 1024

/** The stored messages of one turn. */
export interface Chunk {
  /** The session's message count, these messages included. */
  readonly upTo: number
  readonly json: string
}

/** The newest messages of a session, oldest first, and its summary. */
export interface Recent {
  readonly messages: readonly ModelMessage[]
  /** The number of messages that the session has had. */
  readonly upTo: number
  readonly summary: SessionSummary | undefined
}

interface Entry extends Recent {
  messages: ModelMessage[]
  upTo: number
  /** The length of the messages as JSON, and of the summary. */
  chars: number
  /** True when the session has no older messages. */
  isWhole: boolean
}

/** Holds at most 1000 sessions and 16 Mi characters; drops the least recently used sessions first. */
export class HistoryCache {
  readonly #sessions = new BoundedMap<string, Entry>(SESSIONS_MAX)
  #chars = 0
  #foreignVersion = -1

  /** Returns at least the newest `limit` messages, or undefined when the cache holds fewer. Valid until the next call. */
  get(id: string, limit: number): Recent | undefined {
    const entry = this.#sessions.get(id)
    if (!entry || !(entry.isWhole || entry.messages.length >= limit)) return undefined
    this.#sessions.delete(id) // moves the session to the end, as the most recently used
    this.#sessions.set(id, entry)
    return entry
  }

  /**
   * Stores what was read of a session to cover `limit` messages: the JSON of its newest turns, oldest first, and its summary.
   * Returns all their messages.
   */
  fill(id: string, { chunks, upTo, summary }: Omit<Recent, 'messages'> & { readonly chunks: readonly string[] }, limit: number): Recent {
    this.delete(id)
    const messages = chunks.flatMap((json) => JSON.parse(json) as ModelMessage[])
    const chars = chunks.reduce((sum, json) => sum + json.length, summary?.text.length ?? 0)
    this.#keep(id, { messages: [...messages], chars, upTo, summary, isWhole: messages.length < limit || messages.length === upTo })
    return { messages, upTo, summary }
  }

  /** Adds the messages of a committed turn. If they do not follow the cached ones, another process has written, and the entry is dropped. */
  append(id: string, { upTo, json }: Chunk): void {
    const entry = this.#sessions.get(id)
    if (!entry) return
    const added = JSON.parse(json) as ModelMessage[]
    this.delete(id)
    if (entry.upTo !== upTo - added.length) return
    entry.messages.push(...added)
    entry.chars += json.length
    entry.upTo = upTo
    this.#keep(id, entry)
  }

  delete(id: string): void {
    this.#chars -= this.#sessions.get(id)?.chars ?? 0
    this.#sessions.delete(id)
  }

  /** Clears the cache when another process has written to the file. */
  expireIfForeign(db: Pick<Database, 'foreignVersion'>): void {
    const version = db.foreignVersion()
    if (version === this.#foreignVersion) return
    this.#foreignVersion = version
    this.clear()
  }

  clear(): void {
    this.#sessions.clear()
    this.#chars = 0
  }

  #keep(id: string, entry: Entry): void {
    if (entry.messages.length > 2 * MESSAGES_MAX) {
      entry.chars = Math.ceil((entry.chars * MESSAGES_MAX) / entry.messages.length)
      entry.messages = entry.messages.slice(-MESSAGES_MAX)
      entry.isWhole = false
    }
    const first = this.#sessions.oldest()
    if (first !== undefined && this.#sessions.size >= SESSIONS_MAX) this.delete(first)
    this.#sessions.set(id, entry)
    this.#chars += entry.chars
    while (this.#chars > CHARS_MAX) {
      const oldest = this.#sessions.oldest()
      if (oldest === undefined) return
      this.delete(oldest)
    }
  }
}

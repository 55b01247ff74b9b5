/** The newest messages of recently active sessions, so that a turn does not read and parse what the last one wrote. */
import { BoundedMap, type ModelMessage } from '@sluice/sdk'
import type { Database } from './database.ts'

const SESSIONS_MAX = 1000
/** Of one session; older ones are read from the file. */
const MESSAGES_MAX = 256
/** Of all sessions together, in characters of JSON. */
const CHARS_MAX = 16 * 1024 * 1024

/** The messages of one turn, as they stand in the file. */
export interface Chunk {
  /** The session's message count with them. */
  readonly upTo: number
  readonly json: string
}

interface Entry {
  readonly chunks: { readonly messages: readonly ModelMessage[]; readonly chars: number }[]
  count: number
  chars: number
  /** The session's message count these chunks end with. */
  upTo: number
  /** True: the session has no older messages than these. */
  isWhole: boolean
}

export class HistoryCache {
  readonly #sessions = new BoundedMap<string, Entry>(SESSIONS_MAX)
  #chars = 0
  #foreignVersion = -1

  /** The newest `limit` messages, or undefined if not that many are known. */
  get(id: string, limit: number): ModelMessage[] | undefined {
    const entry = this.#sessions.get(id)
    if (!entry || !(entry.isWhole || entry.count >= limit)) return undefined
    this.#sessions.delete(id) // recently used goes last
    this.#sessions.set(id, entry)
    return entry.chunks.flatMap(({ messages }) => messages).slice(-limit)
  }

  /** Remembers what was read from the file: the newest chunks of a session, oldest first. Returns their messages. */
  fill(id: string, chunks: readonly Chunk[]): ModelMessage[] {
    this.delete(id)
    const parsed = chunks.map(({ json }) => ({ messages: JSON.parse(json) as ModelMessage[], chars: json.length }))
    const messages = parsed.flatMap((chunk) => chunk.messages)
    const upTo = chunks.at(-1)?.upTo ?? 0
    this.#keep(id, { chunks: [], count: 0, chars: 0, upTo, isWhole: messages.length === upTo }, parsed)
    return messages
  }

  /** Adds what a turn has just committed. What does not follow on the messages known is a sign of another writer. */
  append(id: string, { upTo, json }: Chunk): void {
    const entry = this.#sessions.get(id)
    if (!entry) return
    const messages = JSON.parse(json) as ModelMessage[]
    this.delete(id)
    if (entry.upTo !== upTo - messages.length) return
    entry.upTo = upTo
    this.#keep(id, entry, [{ messages, chars: json.length }])
  }

  delete(id: string): void {
    this.#chars -= this.#sessions.get(id)?.chars ?? 0
    this.#sessions.delete(id)
  }

  /** Forgets everything when another process has written to the file since the last call. */
  expireIfForeign(db: Pick<Database, 'foreignVersion'>): void {
    const version = db.foreignVersion()
    if (version === this.#foreignVersion) return
    this.#foreignVersion = version
    this.#clear()
  }

  #clear(): void {
    this.#sessions.clear()
    this.#chars = 0
  }

  #keep(id: string, entry: Entry, added: Entry['chunks']): void {
    for (const chunk of added) {
      entry.chunks.push(chunk)
      entry.count += chunk.messages.length
      entry.chars += chunk.chars
    }
    while (entry.count > MESSAGES_MAX) {
      const oldest = entry.chunks.shift()
      entry.count -= oldest?.messages.length ?? 0
      entry.chars -= oldest?.chars ?? 0
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

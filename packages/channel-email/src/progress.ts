/** How far the mailbox has been read: the last UID under its UIDVALIDITY, and the latest mails, which are known again if UIDs change. */
import { type KeyValue, sha256Hex } from '@sluice/sdk'
import * as v from 'valibot'
import type { Settings } from './settings.ts'

export interface Cursor {
  readonly uidValidity: string
  /** Every mail up to this UID is durable, or was ignored. */
  readonly uid: number
  /** When the mailbox had been read to its end. */
  readonly atMs: number
  /** When the channel first opened the mailbox. Older mails are never read. */
  readonly setUpAtMs: number
  /** Short forms of the ids of the latest mails, oldest first. */
  readonly recent: readonly string[]
}

/** The most ids that are kept. */
export const RECENT_MAX = 1000
const SHORT_CHARS = 12

const cursorSchema = v.object({
  uidValidity: v.string(),
  uid: v.number(),
  atMs: v.number(),
  setUpAtMs: v.number(),
  recent: v.array(v.string()),
})

const short = (id: string): string => sha256Hex(id).slice(0, SHORT_CHARS)

export class Progress {
  readonly #keyValue: KeyValue
  readonly #key: string
  #cursor: Cursor | undefined
  #recent = new Set<string>()

  constructor(keyValue: KeyValue, { imap, username, folder }: Settings) {
    this.#keyValue = keyValue
    this.#key = `mailbox/${sha256Hex([imap.host, username, folder].join('\n')).slice(0, 16)}`
  }

  /** Reads what is stored. Call it before each connection: another process may have read the mailbox meanwhile. */
  async load(): Promise<Cursor | undefined> {
    const { success, output } = v.safeParse(cursorSchema, await this.#keyValue.get(this.#key))
    this.#cursor = success ? output : undefined
    this.#recent = new Set(this.#cursor?.recent)
    return this.#cursor
  }

  get cursor(): Cursor | undefined {
    return this.#cursor
  }

  /** Whether a mail is among the latest ones. */
  isKnown(id: string): boolean {
    return this.#recent.has(short(id))
  }

  remember(id: string): void {
    this.#recent.add(short(id))
    if (this.#recent.size <= RECENT_MAX) return
    for (const oldest of this.#recent) {
      this.#recent.delete(oldest)
      break
    }
  }

  /** Stores a position together with the latest mails. */
  async save(cursor: Omit<Cursor, 'recent'>): Promise<void> {
    const next = { ...cursor, recent: [...this.#recent] }
    await this.#keyValue.set(this.#key, next)
    this.#cursor = next
  }
}

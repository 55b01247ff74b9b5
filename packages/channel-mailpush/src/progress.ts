/** Tracks how far a mailbox has been read: the saved cursor, and the delivered mails around it, which a listing repeats. */
import type { Cursor } from './cursor.ts'

/** The time of a mail may be a little earlier than the change that added it. */
export const MARGIN_MS = 300_000
/** The most mails that are remembered: ten pages of a history. The oldest is forgotten first. */
const DELIVERED_MAX = 1000

export class Progress {
  readonly #save: (cursor: Cursor) => Promise<void>
  readonly #delivered: Map<string, number>
  #cursor: Cursor
  #isSaved = true

  /** `start` is the saved cursor; `save` stores a new one. */
  constructor(start: Cursor, save: (cursor: Cursor) => Promise<void>) {
    this.#save = save
    this.#delivered = new Map(start.handedOver)
    this.#cursor = start
  }

  /** The cursor that was saved last. */
  get cursor(): Cursor {
    return this.#cursor
  }

  /** Returns whether a mail is known to be delivered. */
  isDelivered(id: string): boolean {
    return this.#delivered.has(id)
  }

  /** Remembers that the mail of this time was delivered. */
  markDelivered(id: string, atMs: number): void {
    this.#delivered.set(id, atMs)
    this.#isSaved = false
    const [oldest] = this.#delivered.keys()
    if (oldest !== undefined && this.#delivered.size > DELIVERED_MAX) this.#delivered.delete(oldest)
  }

  /** Saves that all mails up to this change, which was the newest at `atMs`, are delivered. */
  async moveTo(historyId: bigint, atMs: number): Promise<void> {
    const recent = [...this.#delivered].filter(([, mailAtMs]) => mailAtMs >= atMs - MARGIN_MS)
    await this.#saveCursor({ ...this.#cursor, historyId, atMs, handedOver: recent })
    this.#delivered.clear()
    for (const [id, mailAtMs] of recent) this.#delivered.set(id, mailAtMs)
  }

  /** Saves the delivered mails without moving the cursor. Does nothing without new ones. */
  async save(): Promise<void> {
    if (!this.#isSaved) await this.#saveCursor({ ...this.#cursor, handedOver: [...this.#delivered] })
  }

  async #saveCursor(next: Cursor): Promise<void> {
    await this.#save(next)
    this.#cursor = next
    this.#isSaved = true
  }
}

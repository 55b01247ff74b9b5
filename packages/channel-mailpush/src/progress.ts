/** How far a mailbox was read, as it is being read: the cursor, and the mails at its edge, which a listing would bring again. */
import type { Cursor } from './cursor.ts'

export interface Progress {
  /** As it was last kept. */
  cursor(): Cursor
  /** Whether a mail was handed over, as far as that is remembered. */
  knows(id: string): boolean
  /** A mail of that time was handed over. */
  note(id: string, atMs: number): void
  /** All up to this change, the newest of that time, is handed over. */
  moveTo(historyId: bigint, atMs: number): Promise<void>
  /** Keeps what was noted since, and the cursor where it is. */
  save(): Promise<void>
}

/** A mail may carry a time a little before the change that brought it. */
export const MARGIN_MS = 300_000
/** Beyond it the first is forgotten: ten pages of a history. */
const HANDED_OVER_MAX = 1000

/** Begins at a cursor that is kept already. */
export function createProgress(start: Cursor, keep: (cursor: Cursor) => Promise<void>): Progress {
  const handedOver = new Map(start.handedOver)
  let cursor = start
  let isSaved = true

  const keepAs = async (next: Cursor): Promise<void> => {
    await keep(next)
    cursor = next
    isSaved = true
  }
  return {
    cursor: () => cursor,
    knows: (id) => handedOver.has(id),
    note(id, atMs) {
      handedOver.set(id, atMs)
      isSaved = false
      const [first] = handedOver.keys()
      if (first !== undefined && handedOver.size > HANDED_OVER_MAX) handedOver.delete(first)
    },
    async moveTo(historyId, atMs) {
      const edge = [...handedOver].filter(([, mailAtMs]) => mailAtMs >= atMs - MARGIN_MS)
      await keepAs({ ...cursor, historyId, atMs, handedOver: edge })
      handedOver.clear()
      for (const [id, mailAtMs] of edge) handedOver.set(id, mailAtMs)
    },
    async save() {
      if (!isSaved) await keepAs({ ...cursor, handedOver: [...handedOver] })
    },
  }
}

/** How far a mailbox has been read, kept across restarts. */
import type { KeyValue } from '@sluice/sdk'
import * as v from 'valibot'
import { historyIdSchema } from './history-id.ts'

/** Everything up to the change `historyId`, which was the newest at `atMs` or later, is durably handed over. */
export interface Cursor {
  readonly historyId: bigint
  readonly atMs: number
  /** When the mailbox was first looked at: what came before is nobody's question to us. */
  readonly setUpAtMs: number
  /** Mails around `atMs` and later that are handed over, too, each with its time. */
  readonly handedOver: readonly (readonly [id: string, atMs: number])[]
}

const keptSchema = v.object({
  historyId: historyIdSchema,
  atMs: v.number(),
  setUpAtMs: v.optional(v.number(), 0),
  handedOver: v.optional(v.array(v.tuple([v.string(), v.number()])), []),
})
const keyOf = (mailbox: string): string => `cursor/${mailbox}`

export async function readCursor(keyValue: KeyValue, mailbox: string): Promise<Cursor | undefined> {
  const { success, output } = v.safeParse(keptSchema, await keyValue.get(keyOf(mailbox)))
  return success ? output : undefined
}

export const keepCursor = (keyValue: KeyValue, mailbox: string, cursor: Cursor): Promise<void> =>
  keyValue.set(keyOf(mailbox), { ...cursor, historyId: String(cursor.historyId) })

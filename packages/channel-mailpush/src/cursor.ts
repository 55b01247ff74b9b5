/** How far a mailbox has been read, and where reading begins before it was first read; both survive a restart. */
import type { KeyValue } from '@sluice/sdk'
import * as v from 'valibot'
import { historyIdSchema } from './history-id.ts'
import { UNNAMED } from './mail-api.ts'

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
/** The first push of a mailbox that has no cursor yet: the mail it tells of may be older than the first subscription. */
export interface Begin {
  readonly mailbox: string
  /** The change before the one that was pushed, because a listing starts behind the id it is given. */
  readonly historyId: bigint
  readonly atMs: number
}

const beginSchema = v.object({ mailbox: v.string(), historyId: historyIdSchema, atMs: v.number() })
const BEGIN = 'begin'
const keyOf = (mailbox: string): string => `cursor/${mailbox}`

export async function readCursor(keyValue: KeyValue, mailbox: string): Promise<Cursor | undefined> {
  const { success, output } = v.safeParse(keptSchema, await keyValue.get(keyOf(mailbox)))
  return success ? output : undefined
}

export const keepCursor = (keyValue: KeyValue, mailbox: string, cursor: Cursor): Promise<void> =>
  keyValue.set(keyOf(mailbox), { ...cursor, historyId: String(cursor.historyId) })

export async function readBegin(keyValue: KeyValue, mailbox: string): Promise<Begin | undefined> {
  const { success, output } = v.safeParse(beginSchema, await keyValue.get(BEGIN))
  // Some mail APIs do not name the mailbox; the channel has only one.
  return success && (mailbox === UNNAMED || output.mailbox === mailbox) ? output : undefined
}

/** Keeps where to begin, unless an earlier change of the same mailbox is kept already. */
export async function keepBegin(keyValue: KeyValue, begin: Begin): Promise<void> {
  const before = await readBegin(keyValue, begin.mailbox)
  if (before && before.historyId <= begin.historyId) return
  await keyValue.set(BEGIN, { ...begin, historyId: String(begin.historyId) })
}

/** Stores how far a mailbox has been read, and where reading starts before that, so that both survive a restart. */
import type { KeyValue } from '@sluice/sdk'
import * as v from 'valibot'
import { historyIdSchema } from './mail.ts'
import { UNNAMED_MAILBOX } from './mail-api.ts'

/** All mails up to the change `historyId`, which was the newest at `atMs` or later, are durably in the inbox. */
export interface Cursor {
  readonly historyId: bigint
  readonly atMs: number
  /** When the channel first read the mailbox. Older mails are never delivered. */
  readonly setUpAtMs: number
  /** Mails around `atMs` and later that are in the inbox as well, with their times. */
  readonly handedOver: readonly (readonly [id: string, atMs: number])[]
}

/** The first push of a mailbox without a cursor. Its mail may be older than the first subscription. */
export interface FirstPush {
  readonly mailbox: string
  /** The change before the pushed one, because a history starts after the id in the request. */
  readonly historyId: bigint
  readonly atMs: number
}

const cursorSchema = v.object({
  historyId: historyIdSchema,
  atMs: v.number(),
  setUpAtMs: v.optional(v.number(), 0),
  handedOver: v.optional(v.array(v.tuple([v.string(), v.number()])), []),
})
const firstPushSchema = v.object({ mailbox: v.string(), historyId: historyIdSchema, atMs: v.number() })
const FIRST_PUSH_KEY = 'begin'
const cursorKey = (mailbox: string): string => `cursor/${mailbox}`

export async function readCursor(keyValue: KeyValue, mailbox: string): Promise<Cursor | undefined> {
  const { success, output } = v.safeParse(cursorSchema, await keyValue.get(cursorKey(mailbox)))
  return success ? output : undefined
}

export const saveCursor = (keyValue: KeyValue, mailbox: string, cursor: Cursor): Promise<void> =>
  keyValue.set(cursorKey(mailbox), { ...cursor, historyId: String(cursor.historyId) })

/** Returns the first push of a mailbox. An API without profiles does not name its only mailbox, so any push counts. */
export async function readFirstPush(keyValue: KeyValue, mailbox: string): Promise<FirstPush | undefined> {
  const { success, output } = v.safeParse(firstPushSchema, await keyValue.get(FIRST_PUSH_KEY))
  return success && (mailbox === UNNAMED_MAILBOX || output.mailbox === mailbox) ? output : undefined
}

/** Saves a push unless an earlier one of the same mailbox is stored. */
export async function saveFirstPush(keyValue: KeyValue, push: FirstPush): Promise<void> {
  const stored = await readFirstPush(keyValue, push.mailbox)
  if (stored && stored.historyId <= push.historyId) return
  await keyValue.set(FIRST_PUSH_KEY, { ...push, historyId: String(push.historyId) })
}

/** Carries out the edit or the deletion of a message, as the report of the change in the inbox says. */
import type { ChangedMessage, Inbound, MessageKind } from '@sluice/sdk'
import type { Database } from './database.ts'
import { joinTexts, rowKey } from './hashed-keys.ts'
import { END_MESSAGE } from './message-attempt.ts'

const REPORT = 'SELECT channel, account, message_json FROM inbox WHERE number = ? AND ended_at IS NULL'
const CHANGED = 'SELECT number, sender, session, kind, ended_at, turn_id, message_json FROM inbox WHERE key = ?'
const REPLACE = 'UPDATE inbox SET message_json = ? WHERE number = ?'

interface Report {
  readonly channel: string
  readonly account: string
  readonly message_json: string
}

interface Changed {
  readonly number: number
  readonly sender: string
  readonly session: string
  readonly kind: MessageKind | null
  readonly ended_at: number | null
  readonly turn_id: string | null
  readonly message_json: string | null
}

/** These messages run no turn, so that a change of one has nothing to change. */
const WITHOUT_TURN: readonly (MessageKind | null)[] = ['approval_reply', 'change', 'command']

/** Part of a write; see `InboxStore.change`. */
export function changeMessage(db: Database, number: number, atMs: number): ChangedMessage {
  const report = db.get<Report>(REPORT, number)
  if (!report) return { outcome: 'done' }
  const change: Inbound = JSON.parse(report.message_json)
  const { changes } = change
  const changed = changes && db.get<Changed>(CHANGED, rowKey(joinTexts(report.channel, report.account, changes.message)))
  if (!changed) return { outcome: 'unknown' }
  if (!changed.message_json || WITHOUT_TURN.includes(changed.kind) || !isBySender(change, changed)) return { outcome: 'refused' }
  const before: Inbound = JSON.parse(changed.message_json)
  if (changed.turn_id !== null || changed.ended_at !== null) return { outcome: 'begun', session: changed.session, text: before.text }
  if (changes?.what === 'deleted') db.run(END_MESSAGE, atMs, changed.number)
  else db.run(REPLACE, JSON.stringify(edited(before, change)), changed.number)
  db.run(END_MESSAGE, atMs, number)
  return { outcome: 'done' }
}

/** A person edits only own messages. A moderator may delete those of others, and some platforms do not name who deleted. */
const isBySender = ({ sender, changes }: Inbound, changed: Changed): boolean => changes?.what === 'deleted' || sender === changed.sender

/** The message keeps its id, its time and where its reply goes. */
function edited(
  { id, account, sender, to, sentAtMs, inReplyTo, attachments: before }: Inbound,
  { text, typed, attachments: given, quotedFrom, unverified, changes }: Inbound,
): Inbound {
  const attachments = changes?.only === 'text' ? before : given
  return {
    id,
    account,
    sender,
    to,
    text,
    ...(sentAtMs !== undefined && { sentAtMs }),
    ...(inReplyTo !== undefined && { inReplyTo }),
    ...(attachments && { attachments }),
    ...(typed !== undefined && { typed }),
    ...(quotedFrom !== undefined && { quotedFrom }),
    ...(unverified && { unverified }),
  }
}

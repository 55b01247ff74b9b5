/** Inbox messages, from their arrival to their end. The end of a turn, which also ends its message, is in `turns.ts`. */
import type { Clock, InboxEntry, InboxStore, MessageNews } from '@sluice/sdk'
import { appendAudit, discardRecord } from '../cold/audit-log.ts'
import { endWithoutContent } from '../cold/end-without-content.ts'
import { hasJoined, joinMessages } from '../cold/join-messages.ts'
import type { Database } from '../connection/database.ts'
import type { Writer } from '../connection/group-commit.ts'
import { runSteps } from '../connection/run-steps.ts'
import { holdBack } from './admissions.ts'
import { BODY } from './body.ts'
import { prepareChange } from './change-message.ts'
import { createDeliveryTable } from './delivery-table.ts'
import { AUDIT } from './dialect.ts'
import { joinTexts, rowKey } from './hashed-keys.ts'
import { INBOX_TABLE, type InboxColumns, type SessionColumns, toInboxRow, toSessionMessage } from './inbox-row.ts'
import { createKeep, createKnown } from './keep-arrival.ts'
import { createStart, endMessage } from './message-attempt.ts'
import { repliesTo } from './outbox.ts'
import type { RecentIds } from './recent-ids.ts'
import { prepareReplies } from './replies.ts'
import { waitsForPerson } from './turn-row.ts'

// The attempt of a turn that waits for a person was not counted when it started, so it is not uncounted when it ends.
const UNCOUNTED = `max(attempts - NOT ${waitsForPerson('inbox.turn_id')}, 0)`
const RETRY = `
  UPDATE inbox SET state = 'pending', next_at = ?, error = ?, attempts = CASE WHEN ? THEN ${UNCOUNTED} ELSE attempts END
  WHERE number = ? AND state = 'running' RETURNING turn_id, attempts`
const RELEASE = `
  UPDATE inbox SET state = 'pending', attempts = ${UNCOUNTED} WHERE number = ? AND state = 'running' RETURNING turn_id, attempts`
const REQUEUE_TURN = `UPDATE turns SET status = 'queued', attempts = ? WHERE id = ? AND ended_at IS NULL`
const MARK_DEAD = `
  UPDATE inbox SET state = 'dead', next_at = NULL, ended_at = ?, error = ? WHERE number = ? AND ended_at IS NULL RETURNING turn_id`
const LIMIT = "UPDATE inbox SET state = 'limited', next_at = NULL, ended_at = ?, error = ? WHERE number = ? AND ended_at IS NULL"
const FAIL_TURN = `
  UPDATE turns SET status = 'failed', error_json = ?, ended_at = ?, checkpoint_json = NULL WHERE id = ? AND ended_at IS NULL`
const DRAFT = 'UPDATE inbox SET draft = ? WHERE number = ? AND ended_at IS NULL'
const KEEP_READ = 'UPDATE inbox SET message_json = ? WHERE number = ? AND turn_id = ? AND ended_at IS NULL'
const CONTENT = `
  SELECT verdict, message_json, trace, joined, draft, coalesce(raw, (SELECT raw FROM inbox AS first WHERE first.number = message.batch)) AS raw
  FROM inbox AS message WHERE number = ?`
const NUMBER = 'SELECT number FROM inbox WHERE key = ?'
const REPLAY = `
  UPDATE inbox SET state = 'pending', attempts = 0, next_at = NULL, ended_at = NULL, turn_id = NULL, error = NULL, draft = NULL, joined = NULL,
    replayed_at = ?, kind = CASE WHEN kind IN ('approval_reply', 'change', 'command') THEN kind END
  WHERE number = ? AND ended_at IS NOT NULL AND message_id <> ''
    AND coalesce(message_json, raw, (SELECT raw FROM inbox AS first WHERE first.number = inbox.batch)) IS NOT NULL`
/** The messages whose words the turn got while it ran. Their words are not in the message itself. */
const REPLAY_JOINED = `
  UPDATE inbox SET state = 'pending', ended_at = NULL, turn_id = NULL, joined = NULL, replayed_at = ?
  WHERE joined = ? AND turn_id IS NOT NULL AND ended_at IS NOT NULL AND message_id <> ''
    AND coalesce(message_json, raw, (SELECT raw FROM inbox AS first WHERE first.number = inbox.batch)) IS NOT NULL`
const DISCARD =
  "UPDATE inbox SET state = 'discarded' WHERE number = ? AND state IN ('dead', 'limited') AND state <> 'done' RETURNING channel"

const OF_SESSION = `
  SELECT number, sender, state, kind, verdict, turn_id AS turnId, received_at AS receivedAtMs FROM inbox
  WHERE state IN ('pending', 'running') AND state <> 'done' AND session = ? ORDER BY number`

interface Content {
  readonly verdict: string
  readonly message_json: string | null
  readonly raw: Uint8Array | null
  readonly trace: string | null
  readonly joined: number | null
  readonly draft: string | null
}

interface Requeued {
  readonly turn_id: string
  readonly attempts: number
}

/** `recent` holds the ids of recent messages; the caller clears it after pruning. */
export function createInbox(db: Database, writer: Writer, clock: Clock, recent: RecentIds): InboxStore {
  const table = createDeliveryTable<InboxColumns>(db, INBOX_TABLE)
  /** Part of a write: the turn of a message that waits again waits with it. */
  const requeueTurn = (requeued: Requeued | undefined): void => {
    if (requeued) db.run(REQUEUE_TURN, requeued.attempts, requeued.turn_id)
  }
  /** Part of a write: records the news and queues its notice, if it is news. */
  const prepareNews = (number: number, news: MessageNews | undefined) => {
    const queue = prepareReplies(db, news?.notice ?? [], number)
    return () => {
      const isNews = news !== undefined && holdBack(db, news.held, news.quietMs)
      return { isNews, replies: isNews ? queue() : [] }
    }
  }
  const get = (number: number): InboxEntry | undefined => {
    const row = table.get(number)
    const content = db.read(() => db.get<Content>(CONTENT, number))
    if (!row || !content) return undefined
    const { verdict, message_json, raw, trace, joined, draft } = content
    const message = JSON.parse(message_json ?? 'null')
    return {
      ...toInboxRow(row),
      ...(row.kind !== null && { kind: row.kind }),
      verdict,
      raw,
      message,
      ...(joined !== null && { joinedTo: joined }),
      ...(draft !== null && { draft }),
      ...(trace !== null && { trace }),
      replies: repliesTo(db, number),
    }
  }
  return {
    keep: createKeep(db, writer, recent),
    known: createKnown(db, recent),
    start: createStart(db, writer),
    async retry(number, { error, atMs, uncounted, news }) {
      const queue = prepareNews(number, news)
      return writer.write(() => {
        const requeued = db.get<Requeued>(RETRY, atMs, error, uncounted ? 1 : 0, number)
        requeueTurn(requeued)
        return requeued ? queue().replies : []
      })
    },
    release: (number) => writer.write(() => requeueTurn(db.get<Requeued>(RELEASE, number))),
    async done(number, atMs, replies = [], reason) {
      const queue = prepareReplies(db, replies, null)
      return writer.write(() => (runSteps(db, endMessage(number, atMs, reason)) ? queue() : []))
    },
    async drop(number, atMs) {
      await writer.write(() => runSteps(db, endWithoutContent(BODY, number, atMs)))
    },
    async limit(number, { error, atMs, news }) {
      const queue = prepareNews(number, news)
      return writer.write(() => (db.run(LIMIT, atMs, error, number) > 0 ? queue() : { isNews: false, replies: [] }))
    },
    async draft(number, providerId) {
      await writer.write(() => db.run(DRAFT, providerId, number))
    },
    async keepRead(number, turnId, message) {
      const json = JSON.stringify(message)
      await writer.write(() => db.run(KEEP_READ, json, number, turnId))
    },
    async markDead(number, { error, atMs, news }) {
      const errorJson = JSON.stringify({ code: 'internal', message: error })
      const queue = prepareNews(number, news)
      return writer.write(() => {
        const dead = db.get<{ turn_id: string | null }>(MARK_DEAD, atMs, error, number)
        if (!dead) return []
        db.run(FAIL_TURN, errorJson, atMs, dead.turn_id)
        return queue().replies
      })
    },
    list: async (filter) => (await table.newest(filter)).map(toInboxRow),
    get: async (number) => get(number),
    async find(channel, { account, id }) {
      const found = db.read(() => db.get<{ number: number }>(NUMBER, rowKey(joinTexts(channel, account, id))))
      return found && get(found.number)
    },
    join: (join) => hasJoined(writer.write(() => runSteps(db, joinMessages(join)))),
    change: async (number, change) => writer.write(prepareChange(db, number, change)),
    async ofSession(session) {
      const rows = db.read(() => db.all<SessionColumns>(OF_SESSION, session))
      return rows.map(toSessionMessage)
    },
    replay: (number) =>
      writer.write(() => {
        if (db.run(REPLAY, clock.nowMs(), number) === 0) return false
        db.run(REPLAY_JOINED, clock.nowMs(), number)
        return true
      }),
    discard: (number, discard) =>
      writer.write(() => {
        const row = db.get<{ channel: string }>(DISCARD, number)
        if (row) runSteps(db, appendAudit(AUDIT, [discardRecord('inbox', { number, ...row }, discard)]))
        return row !== undefined
      }),
    oldestWaitingMs: async () => table.waiting({ after: 0, limit: 1 }, '')[0]?.received_at ?? null,
    async counts() {
      const counts = table.counts()
      return { pending: counts.get('pending') ?? 0, running: counts.get('running') ?? 0, dead: counts.get('dead') ?? 0 }
    },
  }
}

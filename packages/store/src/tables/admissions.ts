/**
 * Admitted turns in SQLite. Triggers of the schema, and the write that stores an ended turn, end an admission in the
 * commit that ends its turn or its message, so a crash between the two cannot happen.
 */
import type { CountedLimits, Exceeded, MessageNews } from '@sluice/sdk'
import { type AdmissionWrites, lastOf, overspent, RECENT } from '../cold/admissions.ts'
import { all, first, type Steps } from '../cold/cold-database.ts'
import type { Database } from '../connection/database.ts'
import type { Writer } from '../connection/group-commit.ts'
import { runSteps } from '../connection/run-steps.ts'
import { queueReplies } from './replies.ts'

const HOUR_MS = 3_600_000

const KNOWN = 'SELECT 1 FROM admissions WHERE id = ? LIMIT 1'
// After the clock was set back, later rows count as of now: they neither vanish nor count for longer than an hour.
const CLAMP = 'UPDATE admissions SET at = ?2 WHERE client = ?1 AND at > ?2'
// Places have no gaps, except where old rows were pruned: the turn this many places back decides, without a count of the hour.
const AT_PLACE = 'SELECT at FROM admissions WHERE client = ? AND place = ? AND at > ?'
const OPEN = 'SELECT count(*) AS count FROM admissions WHERE client = ? AND open'
const ADD = 'INSERT INTO admissions (id, client, shard, at, open, place) VALUES (?, ?, ?, ?, 1, ?)'
// The time of the news stays, so that a client that is admitted now and then gets no further notice.
const ADMITTED = "UPDATE held_back SET until = ?2 WHERE client = ?1 AND until > ?2 AND cause <> 'loop'"
const CANCEL = 'DELETE FROM admissions WHERE id = ? RETURNING client, place'
const CLOSE_GAP = 'UPDATE admissions SET place = place - 1 WHERE client = ? AND place > ?'
const HOLD = `
  INSERT INTO held_back (client, cause, since, until, news) VALUES (?1, ?2, ?3, ?4, ?3)
  ON CONFLICT DO UPDATE SET
    news = CASE WHEN ?5 THEN ?3 ELSE news END,
    since = CASE WHEN until > ?3 AND since <= ?3 THEN since ELSE ?3 END, until = ?4`

/** Part of a write: records that a client is held back. Returns whether that is news. */
export const holdBack = (db: Database, held: MessageNews['held'], quietMs: number): boolean => runSteps(db, heldBack(held, quietMs))

function* heldBack({ client, cause, sinceMs, untilMs }: MessageNews['held'], quietMs: number): Steps<boolean> {
  const isNews = (yield* first(RECENT, client, cause, sinceMs, quietMs)) === undefined
  yield* all(HOLD, client, cause, sinceMs, untilMs, isNews ? 1 : 0)
  return isNews
}

/** Records who is held back, and queues the notice if that is news. Returns its numbers. */
export function* queueNews({ held, quietMs, notice }: MessageNews): Steps<readonly number[]> {
  return (yield* heldBack(held, quietMs)) ? yield* queueReplies(notice) : []
}

export function admissionWrites(db: Database, writer: Writer): AdmissionWrites {
  const exceededTurns = ({ key, turnsPerHour, turnsInFlight }: CountedLimits, atMs: number): Exceeded | undefined => {
    const last = runSteps(db, lastOf(key))
    // Also without a limit of turns, so that the times of a client never decrease from place to place.
    if (last.at > atMs) db.run(CLAMP, key, atMs)
    if (turnsPerHour > 0) {
      const nth = db.get<{ at: number }>(AT_PLACE, key, last.place - turnsPerHour + 1, atMs - HOUR_MS)
      if (nth) return { limit: 'turns_per_hour', key, value: turnsPerHour, freeAtMs: nth.at + HOUR_MS }
    }
    if (turnsInFlight > 0 && (db.get<{ count: number }>(OPEN, key)?.count ?? 0) >= turnsInFlight)
      return { limit: 'turns_in_flight', key, value: turnsInFlight, freeAtMs: atMs }
    return undefined
  }
  return {
    take: ({ id, counted, shard, atMs }) =>
      writer.write(() => {
        if (db.get(KNOWN, id)) return undefined
        // A turn waits for another one to end only if no other limit is in its way.
        const spent = runSteps(db, overspent(counted, atMs))
        const all = [spent, ...counted.map((limits) => exceededTurns(limits, atMs))].filter((one) => one !== undefined)
        const exceeded = all.find(({ limit }) => limit !== 'turns_in_flight') ?? all[0]
        if (exceeded) return exceeded
        for (const { key } of counted) {
          db.run(ADD, id, key, shard, atMs, runSteps(db, lastOf(key)).place + 1)
          db.run(ADMITTED, key, atMs)
        }
        return undefined
      }),
    async cancel(id) {
      await writer.write(() => {
        for (const { client, place } of db.all<{ client: string; place: number }>(CANCEL, id)) db.run(CLOSE_GAP, client, place)
      })
    },
    hold: (held, quietMs) => writer.write(() => holdBack(db, held, quietMs)),
  }
}

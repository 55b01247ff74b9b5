/**
 * Admitted turns and the spending of clients. Triggers of the schema, and the write that stores an ended turn, end an admission in the
 * commit that ends its turn or its message, so a crash between the two cannot happen.
 */
import type { AdmissionStore, CountedLimits, Exceeded, HeldBack, LimitCause, LoopState, MessageNews } from '@sluice/sdk'
import type { Database } from '../connection/database.ts'
import type { Writer } from '../connection/group-commit.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

const KNOWN = 'SELECT 1 FROM admissions WHERE id = ? LIMIT 1'
// After the clock was set back, later rows count as of now: they neither vanish nor count for longer than an hour.
const CLAMP = 'UPDATE admissions SET at = ?2 WHERE client = ?1 AND at > ?2'
const LAST = 'SELECT place, at FROM admissions WHERE client = ? ORDER BY place DESC LIMIT 1'
// Places have no gaps, except where old rows were pruned: the turn this many places back decides, without a count of the hour.
const AT_PLACE = 'SELECT at FROM admissions WHERE client = ? AND place = ? AND at > ?'
const OPEN = 'SELECT count(*) AS count FROM admissions WHERE client = ? AND open'
const ADD = 'INSERT INTO admissions (id, client, shard, at, open, place) VALUES (?, ?, ?, ?, 1, ?)'
// The time of the news stays, so that a client that is admitted now and then gets no further notice.
const ADMITTED = "UPDATE held_back SET until = ?2 WHERE client = ?1 AND until > ?2 AND cause <> 'loop'"
const CANCEL = 'DELETE FROM admissions WHERE id = ? RETURNING client, place'
const CLOSE_GAP = 'UPDATE admissions SET place = place - 1 WHERE client = ? AND place > ?'
const SPEND = 'INSERT INTO spending (client, day, usd) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET usd = usd + excluded.usd'
const SPENT = 'SELECT usd FROM spending WHERE client = ? AND day = ?'
// A record that begins in the future was made before the clock was set back.
const RECENT = 'SELECT 1 FROM held_back WHERE client = ?1 AND cause = ?2 AND news > ?3 - ?4 AND news <= ?3'
const HELD = `${RECENT} AND until > ?3`
const HOLD = `
  INSERT INTO held_back (client, cause, since, until, news) VALUES (?1, ?2, ?3, ?4, ?3)
  ON CONFLICT DO UPDATE SET
    news = CASE WHEN ?5 THEN ?3 ELSE news END,
    since = CASE WHEN until > ?3 AND since <= ?3 THEN since ELSE ?3 END, until = ?4`
const LOOP = `
  SELECT CASE WHEN loops.answered_at >= sessions.last_active_at THEN NULL ELSE inbox.received_at - sessions.last_active_at END AS afterAnswerMs,
    inbox.sender, inbox.account,
    CASE WHEN loops.number < inbox.number THEN loops.quick END AS quick, held_back.until AS pausedUntilMs,
    inbox.turn_id IS NOT NULL OR inbox.replayed_at IS NOT NULL AS isAdmitted
  FROM inbox
  LEFT JOIN sessions ON sessions.id = coalesce(?2, inbox.session)
  LEFT JOIN loops ON loops.session = coalesce(?2, inbox.session)
  LEFT JOIN held_back ON held_back.client = coalesce(?2, inbox.session) AND held_back.cause = 'loop'
  WHERE inbox.number = ?1 AND inbox.ended_at IS NULL`
const COUNT_QUICK = `
  INSERT INTO loops (session, number, quick, answered_at)
  VALUES (?1, ?2, ?3, coalesce((SELECT last_active_at FROM sessions WHERE id = ?1), 0))
  ON CONFLICT DO UPDATE SET number = ?2, quick = ?3, answered_at = excluded.answered_at WHERE number < ?2`
const FORGET_LOOP = 'DELETE FROM loops WHERE session = ? AND number < ?'
const LIST = `
  SELECT client, cause, since AS sinceMs, until AS untilMs FROM held_back WHERE until > ?1 AND since <= ?1
  ORDER BY until DESC, client LIMIT ?2`
const RESET = [
  'DELETE FROM held_back WHERE client = ?',
  'DELETE FROM loops WHERE session = ?',
  'DELETE FROM spending WHERE client = ?',
  // An admission without a time still counts as in flight until its turn ends.
  'UPDATE admissions SET at = 0 WHERE client = ? AND at > 0',
]

const dayOf = (atMs: number): number => Math.floor(atMs / DAY_MS)

const isRecent = (db: Database, { client, cause, sinceMs }: MessageNews['held'], quietMs: number): boolean =>
  db.get(RECENT, client, cause, sinceMs, quietMs) !== undefined

/** Part of a write: records that a client is held back. Returns whether that is news. */
export function holdBack(db: Database, held: MessageNews['held'], quietMs: number): boolean {
  const isNews = !isRecent(db, held, quietMs)
  db.run(HOLD, held.client, held.cause, held.sinceMs, held.untilMs, isNews ? 1 : 0)
  return isNews
}

export function createAdmissions(db: Database, writer: Writer): AdmissionStore {
  const overspent = (counted: readonly CountedLimits[], atMs: number): Exceeded | undefined => {
    const day = dayOf(atMs)
    for (const { key, usdPerDay: value } of counted) {
      if (value === 0) continue
      const usd = db.get<{ usd: number }>(SPENT, key, day)?.usd ?? 0
      if (usd >= value) return { limit: 'usd_per_day', key, value, freeAtMs: (day + 1) * DAY_MS }
    }
    return undefined
  }
  const lastOf = (client: string): { place: number; at: number } =>
    db.get<{ place: number; at: number }>(LAST, client) ?? { place: 0, at: Number.NEGATIVE_INFINITY }
  const exceededTurns = ({ key, turnsPerHour, turnsInFlight }: CountedLimits, atMs: number): Exceeded | undefined => {
    const last = lastOf(key)
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
        const all = [overspent(counted, atMs), ...counted.map((limits) => exceededTurns(limits, atMs))].filter((one) => one !== undefined)
        const exceeded = all.find(({ limit }) => limit !== 'turns_in_flight') ?? all[0]
        if (exceeded) return exceeded
        for (const { key } of counted) {
          db.run(ADD, id, key, shard, atMs, lastOf(key).place + 1)
          db.run(ADMITTED, key, atMs)
        }
        return undefined
      }),
    async cancel(id) {
      await writer.write(() => {
        for (const { client, place } of db.all<{ client: string; place: number }>(CANCEL, id)) db.run(CLOSE_GAP, client, place)
      })
    },
    async spend(keys, usd, atMs) {
      await writer.write(() => {
        for (const key of keys) db.run(SPEND, key, dayOf(atMs), usd)
      })
    },
    overspent: async (counted, atMs) => db.read(() => overspent(counted, atMs)),
    async hold(held, quietMs) {
      // A client that goes on asking is not worth a write for each request.
      const { client, cause, sinceMs } = held
      if (db.read(() => db.get(HELD, client, cause, sinceMs, quietMs))) return false
      return writer.write(() => holdBack(db, held, quietMs))
    },
    wasServed: async (client, atMs) => db.read(() => lastOf(client).at > atMs - DAY_MS),
    async loopState(inbox, session) {
      const row = db.read(() =>
        db.get<Omit<LoopState, 'quick' | 'isAdmitted'> & { quick: number | null; isAdmitted: number }>(LOOP, inbox, session ?? null),
      )
      return row && { ...row, quick: row.quick ?? 0, isAdmitted: row.isAdmitted === 1 }
    },
    async countQuick(session, inbox, quick) {
      await writer.write(() => (quick === 0 ? db.run(FORGET_LOOP, session, inbox) : db.run(COUNT_QUICK, session, inbox, quick)))
    },
    list: async (atMs, limit) =>
      db.read(() =>
        db.all<{ client: string; cause: LimitCause; sinceMs: number; untilMs: number }>(LIST, atMs, limit),
      ) satisfies HeldBack[],
    reset: (client) => writer.write(() => RESET.map((text) => db.run(text, client)).some((rows) => rows > 0)),
  }
}

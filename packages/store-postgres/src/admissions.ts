/**
 * Admitted turns and the spending of clients. Triggers of the schema end an admission in the commit that ends its turn or its
 * message, so a crash between the two cannot happen.
 */
import type {
  AdmissionRequest,
  AdmissionStore,
  CountedLimits,
  Exceeded,
  HeldBack,
  LoopState,
  OwnedAdmissionStore,
  ShardRange,
} from '@sluice/sdk'
import { sql } from './connection.ts'
import type { Db } from './db.ts'
import { isAliveProcess } from './live-process.ts'
import type { Tx } from './writer.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

// Requests that count for one client take place one after the other, in all processes.
const LOCK =
  'SELECT pg_advisory_xact_lock(7354, lock) FROM (SELECT DISTINCT hashtext(key) AS lock FROM unnest($1::text[]) AS key ORDER BY 1) AS locks'
const KNOWN = 'SELECT 1 FROM admissions WHERE id = $1 LIMIT 1'
// After the clock was set back, later rows count as of now: they neither vanish nor count for longer than an hour.
const CLAMP = 'UPDATE admissions SET at = $2 WHERE client = $1 AND at > $2'
const LAST = 'SELECT place, at FROM admissions WHERE client = $1 ORDER BY place DESC LIMIT 1'
// Places have no gaps, except where old rows were pruned: the turn this many places back decides, without a count of the hour.
const AT_PLACE = 'SELECT at FROM admissions WHERE client = $1 AND place = $2 AND at > $3'
const OPEN = 'SELECT count(*) AS count FROM admissions WHERE client = $1 AND open'
const ADD = 'INSERT INTO admissions (id, client, shard, at, open, place, process) VALUES ($1, $2, $3, $4, true, $5, $6)'
// The time of the news stays, so that a client that is admitted now and then gets no further notice.
const ADMITTED = "UPDATE held_back SET until = $2 WHERE client = $1 AND until > $2 AND cause <> 'loop'"
const CLIENTS_OF = 'SELECT client FROM admissions WHERE id = $1'
const CANCEL = 'DELETE FROM admissions WHERE id = $1 RETURNING client, place'
const CLOSE_GAP = 'UPDATE admissions SET place = place - 1 WHERE client = $1 AND place > $2'
const SPEND = `
  INSERT INTO spending (client, day, usd) SELECT DISTINCT client, $2::bigint, $3::float8 FROM unnest($1::text[]) AS client ORDER BY client
  ON CONFLICT (client, day) DO UPDATE SET usd = spending.usd + excluded.usd`
const SPENT = 'SELECT usd FROM spending WHERE client = $1 AND day = $2'
// A record that begins in the future was made before the clock was set back.
const RECENT = 'SELECT 1 FROM held_back WHERE client = $1 AND cause = $2 AND news > $3::float8 - $4 AND news <= $3'
const HELD = `${RECENT} AND until > $3`
const HOLD = `
  INSERT INTO held_back AS held (client, cause, since, until, news) VALUES ($1, $2, $3::float8, $4, $3)
  ON CONFLICT (client, cause) DO UPDATE SET
    news = CASE WHEN $5 THEN $3 ELSE held.news END,
    since = CASE WHEN held.until > $3 AND held.since <= $3 THEN held.since ELSE $3 END, until = $4`
const LOOP = `
  SELECT CASE WHEN loops.answered_at >= sessions.last_active_at THEN NULL ELSE inbox.received_at - sessions.last_active_at END
      AS "afterAnswerMs",
    inbox.sender, inbox.account, CASE WHEN loops.number < inbox.number THEN loops.quick END AS quick, held_back.until AS "pausedUntilMs",
    inbox.turn_id IS NOT NULL OR inbox.replayed_at IS NOT NULL AS "isAdmitted"
  FROM inbox
  LEFT JOIN sessions ON sessions.id = inbox.session
  LEFT JOIN loops ON loops.session = inbox.session
  LEFT JOIN held_back ON held_back.client = inbox.session AND held_back.cause = 'loop'
  WHERE inbox.number = $1 AND inbox.ended_at IS NULL`
const COUNT_QUICK = `
  INSERT INTO loops (session, number, quick, answered_at)
  VALUES ($1, $2, $3, coalesce((SELECT last_active_at FROM sessions WHERE id = $1), 0))
  ON CONFLICT (session) DO UPDATE SET number = $2, quick = $3, answered_at = excluded.answered_at WHERE loops.number < $2`
const FORGET_LOOP = 'DELETE FROM loops WHERE session = $1 AND number < $2'
const LIST = `
  SELECT client, cause, since AS "sinceMs", until AS "untilMs" FROM held_back WHERE until > $1 AND since <= $1
  ORDER BY until DESC, client LIMIT $2`
// An admission without a time still counts as in flight until its turn ends.
const RESET = `
  WITH held AS (DELETE FROM held_back WHERE client = $1 RETURNING 1),
    looped AS (DELETE FROM loops WHERE session = $1 RETURNING 1),
    spent AS (DELETE FROM spending WHERE client = $1 RETURNING 1),
    admitted AS (UPDATE admissions SET at = 0 WHERE client = $1 AND at > 0 RETURNING 1)
  SELECT * FROM held UNION ALL SELECT * FROM looped UNION ALL SELECT * FROM spent UNION ALL SELECT * FROM admitted`
const RECOVER = `
  UPDATE admissions SET open = false WHERE open AND shard BETWEEN $1 AND $2 AND id NOT LIKE 'inbox:%'
    AND (process IS NULL OR process = $4 OR NOT ${isAliveProcess('admissions.process')})
    AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.id = admissions.id AND ended_at IS NULL) AND NOT (id = ANY ($3::text[]))`
/** The admissions of turns that died unstored with their process. */
const END_DEAD = `
  UPDATE admissions SET open = false WHERE open AND process IS NOT NULL AND id NOT LIKE 'inbox:%'
    AND NOT ${isAliveProcess('admissions.process')}
    AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.id = admissions.id AND ended_at IS NULL)`
const HAS_DEAD = `
  SELECT 1 FROM admissions WHERE open AND process IS NOT NULL AND id NOT LIKE 'inbox:%' AND NOT ${isAliveProcess('admissions.process')}
    AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.id = admissions.id AND ended_at IS NULL) LIMIT 1`

const dayOf = (atMs: number): number => Math.floor(atMs / DAY_MS)

type Query = Pick<Tx, 'all' | 'get'>

/** Part of a transaction: records that a client is held back. Resolves to whether that is news. */
export async function holdBack(tx: Tx, { client, cause, sinceMs, untilMs }: HeldBack, quietMs: number): Promise<boolean> {
  await tx.all(LOCK, [client])
  const isNews = (await tx.get(RECENT, client, cause, sinceMs, quietMs)) === undefined
  await tx.all(HOLD, client, cause, sinceMs, untilMs, isNews)
  return isNews
}

async function overspent(query: Query, counted: readonly CountedLimits[], atMs: number): Promise<Exceeded | undefined> {
  const day = dayOf(atMs)
  for (const { key, usdPerDay: value } of counted) {
    if (value === 0) continue
    const usd = (await query.get<{ usd: number }>(SPENT, key, day))?.usd ?? 0
    if (usd >= value) return { limit: 'usd_per_day', key, value, freeAtMs: (day + 1) * DAY_MS }
  }
  return undefined
}

const lastOf = async (query: Query, client: string): Promise<{ place: number; at: number }> =>
  (await query.get<{ place: number; at: number }>(LAST, client)) ?? { place: 0, at: Number.NEGATIVE_INFINITY }

async function exceededTurns(tx: Tx, { key, turnsPerHour, turnsInFlight }: CountedLimits, atMs: number): Promise<Exceeded | undefined> {
  const last = await lastOf(tx, key)
  // Also without a limit of turns, so that the times of a client never decrease from place to place.
  if (last.at > atMs) await tx.all(CLAMP, key, atMs)
  if (turnsPerHour > 0) {
    const nth = await tx.get<{ at: number }>(AT_PLACE, key, last.place - turnsPerHour + 1, atMs - HOUR_MS)
    if (nth) return { limit: 'turns_per_hour', key, value: turnsPerHour, freeAtMs: nth.at + HOUR_MS }
  }
  const open = turnsInFlight > 0 ? await tx.get<{ count: number }>(OPEN, key) : undefined
  return open && open.count >= turnsInFlight ? { limit: 'turns_in_flight', key, value: turnsInFlight, freeAtMs: atMs } : undefined
}

async function take(tx: Tx, process: string, { id, counted, shard, atMs }: AdmissionRequest): Promise<Exceeded | undefined> {
  const keys = counted.map(({ key }) => key)
  await tx.all(LOCK, keys)
  if (await tx.get(KNOWN, id)) return undefined
  // A turn waits for another one to end only if no other limit is in its way.
  const all: Exceeded[] = []
  const spent = await overspent(tx, counted, atMs)
  if (spent) all.push(spent)
  for (const limits of counted) {
    const turns = await exceededTurns(tx, limits, atMs)
    if (turns) all.push(turns)
  }
  const exceeded = all.find(({ limit }) => limit !== 'turns_in_flight') ?? all[0]
  if (exceeded) return exceeded
  for (const key of keys) {
    await tx.all(ADD, id, key, shard, atMs, (await lastOf(tx, key)).place + 1, process)
    await tx.all(ADMITTED, key, atMs)
  }
  return undefined
}

export function createAdmissions(db: Db, process: string): AdmissionStore {
  const { writer } = db
  return {
    take: (request) => writer.transaction((tx) => take(tx, process, request)),
    cancel: (id) =>
      writer.transaction(async (tx) => {
        const clients = await tx.all<{ client: string }>(CLIENTS_OF, id)
        await tx.all(
          LOCK,
          clients.map(({ client }) => client),
        )
        for (const { client, place } of await tx.all<{ client: string; place: number }>(CANCEL, id)) await tx.all(CLOSE_GAP, client, place)
      }),
    async spend(keys, usd, atMs) {
      await writer.write(sql(SPEND, keys, dayOf(atMs), usd))
    },
    overspent: (counted, atMs) => overspent(db, counted, atMs),
    async hold(held, quietMs) {
      // A client that goes on asking is not worth a write for each request.
      const { client, cause, sinceMs } = held
      if (await db.get(HELD, client, cause, sinceMs, quietMs)) return false
      return writer.transaction((tx) => holdBack(tx, held, quietMs))
    },
    wasServed: async (client, atMs) => (await lastOf(db, client)).at > atMs - DAY_MS,
    async loopState(inbox) {
      const row = await db.get<Omit<LoopState, 'quick'> & { quick: number | null }>(LOOP, inbox)
      return row && { ...row, quick: row.quick ?? 0 }
    },
    async countQuick(session, inbox, quick) {
      await writer.write(quick === 0 ? sql(FORGET_LOOP, session, inbox) : sql(COUNT_QUICK, session, inbox, quick))
    },
    list: (atMs, limit) => db.all<HeldBack>(LIST, atMs, limit),
    reset: async (client) => (await writer.write(sql(RESET, client))).length > 0,
  }
}

export function ownedAdmissions(db: Db, process: string, shards: ShardRange | null): Pick<OwnedAdmissionStore, 'recover'> {
  return {
    async recover(running) {
      if (shards) await db.writer.write(sql(RECOVER, shards.from, shards.to, running, process))
    },
  }
}

/** Ends the admissions of turns that died unstored with their process. Writes only where there are any. */
export async function endDeadAdmissions(db: Db): Promise<void> {
  if (await db.get(HAS_DEAD)) await db.writer.write(sql(END_DEAD))
}

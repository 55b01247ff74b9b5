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
  LimitName,
  LoopState,
  OwnedAdmissionStore,
  ShardRange,
} from '@sluice/sdk'
import { isAliveProcess } from '../cluster/live-process.ts'
import { type Row, type Statement, sql } from '../connection/connection.ts'
import { columnsOf, type Database } from '../connection/database.ts'
import type { Kind, Tx } from '../connection/group-commit.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

const LAST = 'SELECT place, at FROM admissions WHERE client = $1 ORDER BY place DESC LIMIT 1'
const TAKE = `
  SELECT request, exceeded, of_key AS key, limit_value AS value, free_at AS "freeAtMs"
  FROM take_admissions($1, $2, $3, $4, $5, $6, $7, $8, $9)`
const LOCK_CLIENTS =
  'SELECT pg_advisory_xact_lock(7354, lock) FROM (SELECT DISTINCT hashtext(client) AS lock FROM admissions WHERE id = ANY ($1::text[]) ORDER BY 1) AS locks'
// Later places of the client move down by the number of places before them that are deleted.
const CANCEL = `
  WITH gone AS (DELETE FROM admissions WHERE id = ANY ($1::text[]) RETURNING client, place)
  UPDATE admissions AS later SET place = place - (SELECT count(*) FROM gone WHERE gone.client = later.client AND gone.place < later.place)
  WHERE place > (SELECT min(gone.place) FROM gone WHERE gone.client = later.client) AND client IN (SELECT client FROM gone)
    AND id <> ALL ($1::text[])`
const SPEND = `
  INSERT INTO spending (client, day, usd) SELECT DISTINCT client, $2::bigint, $3::float8 FROM unnest($1::text[]) AS client ORDER BY client
  ON CONFLICT (client, day) DO UPDATE SET usd = spending.usd + excluded.usd`
const SPENT = 'SELECT usd FROM spending WHERE client = $1 AND day = $2'
// A record that begins in the future was made before the clock was set back.
const HELD = `
  SELECT 1 FROM held_back WHERE client = $1 AND cause = $2 AND news > $3::float8 - $4 AND news <= $3 AND until > $3`
const HOLD = 'SELECT hold_back($1, $2, $3, $4, $5) AS "isNews"'
const LOOP = `
  SELECT CASE WHEN loops.answered_at >= sessions.last_active_at THEN NULL ELSE inbox.received_at - sessions.last_active_at END
      AS "afterAnswerMs",
    inbox.sender, inbox.account, CASE WHEN loops.number < inbox.number THEN loops.quick END AS quick, held_back.until AS "pausedUntilMs",
    inbox.turn_id IS NOT NULL OR inbox.replayed_at IS NOT NULL AS "isAdmitted"
  FROM inbox
  LEFT JOIN sessions ON sessions.id = coalesce($2::text, inbox.session)
  LEFT JOIN loops ON loops.session = coalesce($2::text, inbox.session)
  LEFT JOIN held_back ON held_back.client = coalesce($2::text, inbox.session) AND held_back.cause = 'loop'
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

/** A statement that calls `hold_back` for a client, whose row all processes share. */
interface Holding {
  readonly client: string
  readonly cause: string
  readonly statement: Statement
}

/** The results are the rows of each statement. In the order of the rows of the clients, so that two processes cannot wait for each other. */
export const HOLDINGS: Kind<Holding, readonly Row[]> = {
  isApart: true,
  keys: () => [],
  statements: (holdings) => inOrder(holdings).map(({ statement }) => statement),
  results(holdings, rows) {
    const found = new Map(inOrder(holdings).map((holding, at) => [holding, rows[at] ?? []]))
    return holdings.map((holding) => found.get(holding) ?? [])
  },
}

const inOrder = (holdings: readonly Holding[]): readonly Holding[] =>
  holdings.toSorted((a, b) => compare(a.client, b.client) || compare(a.cause, b.cause))

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

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

interface Asked {
  readonly request: AdmissionRequest
  readonly process: string
}

/** Requests of one process share a transaction of one round trip: its locks are held for no longer than the server needs. */
const ADMISSIONS: Kind<Asked, Exceeded | undefined> = {
  isApart: true,
  keys: () => [],
  statements(asked) {
    const [ids, shards, times] = columnsOf(
      asked.map(({ request }) => request),
      ({ id }) => id,
      ({ shard }) => shard,
      ({ atMs }) => atMs,
    )
    const counted = asked.flatMap(({ request }) => request.counted)
    const firsts = [1]
    for (const { request } of asked) firsts.push((firsts.at(-1) ?? 1) + request.counted.length)
    const limits = columnsOf(
      counted,
      ({ key }) => key,
      ({ turnsPerHour }) => turnsPerHour,
      ({ turnsInFlight }) => turnsInFlight,
      ({ usdPerDay }) => usdPerDay,
    )
    const processes = asked.map(({ process }) => process)
    return [sql(TAKE, ids, shards, times, processes, firsts, ...limits)]
  },
  results(asked, [rows = []]) {
    const exceeded = new Map(
      (rows as unknown as readonly (Omit<Exceeded, 'limit'> & { request: number; exceeded: LimitName })[]).map(
        ({ request, exceeded: limit, key, value, freeAtMs }): [number, Exceeded] => [request, { limit, key, value, freeAtMs }],
      ),
    )
    return asked.map((_, at) => exceeded.get(at))
  },
}

const CANCELLATIONS: Kind<string, undefined> = {
  isApart: true,
  keys: () => [],
  statements: (ids) => [sql(LOCK_CLIENTS, ids), sql(CANCEL, ids)],
  results: (ids) => ids.map(() => undefined),
}

export function createAdmissions(db: Database, process: string): AdmissionStore {
  const { writer } = db
  return {
    take: (request) => writer.add(ADMISSIONS, { request, process }),
    async cancel(id) {
      await writer.add(CANCELLATIONS, id)
    },
    async spend(keys, usd, atMs) {
      await writer.write(sql(SPEND, keys, dayOf(atMs), usd))
    },
    overspent: (counted, atMs) => overspent(db, counted, atMs),
    async hold(held, quietMs) {
      // A client that goes on asking is not worth a write for each request.
      const { client, cause, sinceMs, untilMs } = held
      if (await db.get(HELD, client, cause, sinceMs, quietMs)) return false
      const [row] = await writer.add(HOLDINGS, { client, cause, statement: sql(HOLD, client, cause, sinceMs, untilMs, quietMs) })
      return row?.isNews === true
    },
    wasServed: async (client, atMs) => (await lastOf(db, client)).at > atMs - DAY_MS,
    async loopState(inbox, session) {
      const row = await db.get<Omit<LoopState, 'quick'> & { quick: number | null }>(LOOP, inbox, session ?? null)
      return row && { ...row, quick: row.quick ?? 0 }
    },
    async countQuick(session, inbox, quick) {
      await writer.write(quick === 0 ? sql(FORGET_LOOP, session, inbox) : sql(COUNT_QUICK, session, inbox, quick))
    },
    list: (atMs, limit) => db.all<HeldBack>(LIST, atMs, limit),
    reset: async (client) => (await writer.write(sql(RESET, client))).length > 0,
  }
}

export function ownedAdmissions(db: Database, process: string, shards: ShardRange | null): Pick<OwnedAdmissionStore, 'recover'> {
  return {
    async recover(running) {
      if (shards) await db.writer.write(sql(RECOVER, shards.from, shards.to, running, process))
    },
  }
}

/** Ends the admissions of turns that died unstored with their process. Writes only where there are any. */
export async function endDeadAdmissions(db: Database): Promise<void> {
  if (await db.get(HAS_DEAD)) await db.writer.write(sql(END_DEAD))
}

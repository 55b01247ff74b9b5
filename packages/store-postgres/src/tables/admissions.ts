/**
 * Admitted turns in PostgreSQL. Triggers of the schema end an admission in the commit that ends its turn or its
 * message, so a crash between the two cannot happen.
 */
import type { AdmissionRequest, Exceeded, LimitName, OwnedAdmissionStore, ShardRange } from '@sluice/sdk'
import type { AdmissionWrites } from '@sluice/store/shared'
import { isAliveProcess } from '../cluster/live-process.ts'
import { type Row, type Statement, sql } from '../connection/connection.ts'
import { columnsOf, type Database } from '../connection/database.ts'
import type { Kind } from '../connection/group-commit.ts'

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
const HOLD = 'SELECT hold_back($1, $2, $3, $4, $5) AS "isNews"'
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

export const admissionWrites = ({ writer }: Database, process: string): AdmissionWrites => ({
  take: (request) => writer.add(ADMISSIONS, { request, process }),
  async cancel(id) {
    await writer.add(CANCELLATIONS, id)
  },
  async hold({ client, cause, sinceMs, untilMs }, quietMs) {
    const [row] = await writer.add(HOLDINGS, { client, cause, statement: sql(HOLD, client, cause, sinceMs, untilMs, quietMs) })
    return row?.isNews === true
  },
})

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

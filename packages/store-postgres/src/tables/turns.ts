/** Turns, and the single transaction that ends one: its row, its messages, its replies and its inbox message. */
import {
  AppError,
  type OwnedTurnStore,
  parseAgentKey,
  type ShardRange,
  shardOfTurn,
  type TurnEnd,
  type TurnRow,
  type TurnStore,
  type UnfinishedTurn,
} from '@sluice/sdk'
import {
  type CostColumns,
  hashKey,
  inputIn,
  type ListedColumns,
  listedTurn,
  type OpenColumns,
  openSessionsOf,
  periodCost,
  QUARTER_MS,
  responseIn,
  stepsJson,
  type TurnColumns,
  toTurn,
} from '@sluice/store/shared'
import { isAliveProcess } from '../cluster/live-process.ts'
import { type Row, sql } from '../connection/connection.ts'
import { columnsOf, type Database, isOpen } from '../connection/database.ts'
import type { Kind } from '../connection/group-commit.ts'
import { shardQuery } from '../connection/shard-reads.ts'
import type { Histories } from './history-cache.ts'
import type { WatchedKeyTable } from './idempotency.ts'
import { waitsForPerson } from './message-attempt.ts'
import { insertReplies, replyValues } from './replies.ts'

// Claims of one key wait for each other here, so that the next statement sees a turn that another process has just stored.
const LOCK_KEY = 'SELECT pg_advisory_xact_lock(7352, hashtext($1))'
const ENQUEUE = `
  INSERT INTO turns (id, agent, session_id, owner, source, status, input, created_at, context_json, idempotency, shard, process, place)
  SELECT $1, $2, $3::text, $4::text, $5, 'queued', $6, $7::float8, $8::text, $9::text, $10::smallint, $11::text, nextval('turn_places')
  WHERE $9::text IS NULL OR NOT EXISTS (
    SELECT 1 FROM turns WHERE idempotency = $9 AND (ended_at IS NULL OR status = 'done' AND ended_at > $12::float8))
  ON CONFLICT DO NOTHING RETURNING id`
const START = `
  UPDATE turns SET status = 'running', process = $2, starts = starts + 1, attempts = attempts + (NOT ${waitsForPerson('turns.id')})::int
  WHERE id = $1 AND ended_at IS NULL RETURNING attempts`
// An attempt that resumed a turn with an open approval was not counted, so it is not uncounted either.
const UNCOUNT = `
  WITH turn AS (
    UPDATE turns SET attempts = greatest(attempts - 1, 0) WHERE id = $1 AND ended_at IS NULL AND NOT ${waitsForPerson('turns.id')}
    RETURNING inbox)
  UPDATE inbox SET attempts = greatest(attempts - 1, 0) FROM turn WHERE number = turn.inbox AND state = 'running'`
const COUNT = `
  WITH turn AS (UPDATE turns SET attempts = attempts + 1 WHERE id = $1 AND ended_at IS NULL RETURNING inbox)
  UPDATE inbox SET attempts = attempts + 1 FROM turn WHERE number = turn.inbox AND state = 'running'`
const CHECKPOINT = 'UPDATE turns SET checkpoint_json = $2 WHERE id = $1 AND ended_at IS NULL RETURNING id'
const ADD_USAGE = `
  UPDATE turns SET input_tokens = input_tokens + $2, output_tokens = output_tokens + $3, cost_usd = cost_usd + $4, model = coalesce($5, model)
  WHERE id = $1 AND ended_at IS NULL`
const REQUEST_ABORT = `
  UPDATE turns SET abort_requested = true WHERE id = $1 AND ended_at IS NULL AND ($2::text IS NULL OR owner = $2) RETURNING id`
const SPENT = `
  SELECT coalesce((SELECT sum(cost_usd) FROM turns WHERE ended_at >= $1 AND cost_usd <> 0), 0)
    + coalesce((SELECT sum(usd) FROM dropped_costs WHERE quarter >= $2), 0) AS usd`

/** The longest list of costs, as in the other store. */
const PERIODS_MAX = 20_000
const COSTS = `
  SELECT floor((at - $4::float8) / $3::float8) AS period, agent, model, sum(usd) AS usd, sum(turns)::float8 AS turns,
    sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens
  FROM (
    SELECT ended_at AS at, agent, model, cost_usd AS usd, 1 AS turns, input_tokens, output_tokens
    FROM turns WHERE ended_at >= $1::float8 AND ended_at < $2::float8
    UNION ALL
    SELECT quarter * ${QUARTER_MS}::float8, agent, nullif(model, ''), usd, turns, input_tokens, output_tokens
    FROM dropped_costs WHERE quarter >= $1::float8 / ${QUARTER_MS} AND quarter < $2::float8 / ${QUARTER_MS}
  ) AS ended GROUP BY period, agent, model ORDER BY period, agent COLLATE "C", model COLLATE "C" NULLS FIRST LIMIT ${PERIODS_MAX}`
const OPEN_SESSIONS = `
  SELECT agent, session_id, owner FROM turns WHERE ended_at IS NULL AND inbox IS NULL
  UNION SELECT '', session, NULL FROM inbox WHERE ended_at IS NULL`
const LISTED = `
  SELECT id, agent, session_id AS "sessionId", owner, source, status, model, finish_reason AS "finishReason", error_json AS "errorJson",
    input_tokens AS "inputTokens", output_tokens AS "outputTokens", cost_usd AS "costUsd", attempts, created_at AS "createdAtMs",
    ended_at AS "endedAtMs", (SELECT sender FROM inbox WHERE number = turns.inbox) AS sender
  FROM turns WHERE ended_at IS NOT NULL AND ($2::text IS NULL OR status = $2) AND ($3::text IS NULL OR agent = $3)
    AND ($4::text IS NULL OR owner = $4) AND ($5::text IS NULL OR session_id = $5)
    AND ($6::float8 IS NULL OR (ended_at, id COLLATE "C") < ($6, $7::text))
    AND ($8::float8 IS NULL OR ended_at >= $8)
    AND ($9::text IS NULL OR EXISTS (SELECT 1 FROM inbox WHERE number = turns.inbox AND sender = $9))
  ORDER BY ended_at DESC, id COLLATE "C" DESC LIMIT $1`

/** True for a turn that no other process than this one is about to run. */
const isLeft = (self: string): string => `(process IS NULL OR process = ${self} OR NOT ${isAliveProcess('turn.process')})`

const COLUMNS = `
  id, agent, session_id, owner, source, status, input, response, model, finish_reason, error_json, input_tokens, output_tokens, cost_usd,
  attempts, starts, created_at, ended_at, context_json, inbox, steps_json,
  (SELECT messages_json FROM messages WHERE messages.session = turn.session AND messages.up_to = turn.up_to) AS messages_json,
  CASE WHEN input IS NULL AND inbox IS NOT NULL AND up_to IS NULL
    THEN (SELECT message_json FROM inbox WHERE number = turn.inbox) END AS message_json`
const GET = `SELECT ${COLUMNS} FROM turns AS turn WHERE id = $1`
const UNFINISHED = shardQuery(
  (shard) => `
  SELECT ${COLUMNS}, checkpoint_json, shard FROM turns AS turn
  WHERE ended_at IS NULL AND inbox IS NULL AND ${shard} AND ${isLeft('$4')} ORDER BY created_at, id LIMIT $3`,
)
/** The shards are the ones of the leases of this process. */
const ABANDONED = `
  SELECT ${COLUMNS}, checkpoint_json FROM turns AS turn
  WHERE ended_at IS NULL AND inbox IS NULL AND (process = $1 OR ${isLeft('$1')} AND EXISTS (
    SELECT 1 FROM leases WHERE leases.process = $1 AND turn.shard BETWEEN shard_from AND shard_to))
  ORDER BY created_at, id LIMIT $2`
const ABORTS_OF = `
  SELECT id FROM turns WHERE abort_requested AND ended_at IS NULL AND (process = $1 OR process IS NULL AND EXISTS (
    SELECT 1 FROM leases WHERE leases.process = $1 AND turns.shard BETWEEN shard_from AND shard_to))`
const TO_ABORT = shardQuery((shard) => `SELECT id, shard FROM turns WHERE abort_requested AND ended_at IS NULL AND ${shard}`)

const END_TYPES =
  'place int, id text, agent text, session_id text, key text, owner text, source text, status text, input text, response text, model text, finish_reason text, error_json text, input_tokens float8, output_tokens float8, cost_usd float8, attempts float8, created_at float8, ended_at float8, idempotency text, shard smallint, message bigint, messages_json text, said int, steps_json text'
const END_COLUMNS = END_TYPES.split(', ').map((column) => column.split(' ')[0] ?? '')
const END_PARAMETERS = END_TYPES.split(', ')
  .map((column, at) => `$${at + 1}::${column.split(' ')[1]}[]`)
  .join(', ')
/** A turn that has ended stays as it is, and nothing of the end is stored. */
const FINISH = `
  WITH given AS (SELECT * FROM unnest(${END_PARAMETERS}) AS given (${END_COLUMNS.join(', ')})),
    stored AS (SELECT id, ended_at FROM turns WHERE id = ANY ($2::text[]) FOR UPDATE),
    ends AS (SELECT * FROM given WHERE NOT EXISTS (SELECT 1 FROM stored WHERE stored.id = given.id AND stored.ended_at IS NOT NULL)),
    -- An update without ON CONFLICT writes no record of a lock. Most sessions are known.
    moved AS (
      UPDATE sessions SET last_active_at = greatest(last_active_at, ends.ended_at), message_count = message_count + ends.said
      FROM ends WHERE sessions.id = ends.session_id AND ends.said > 0 RETURNING sessions.id, number, message_count),
    begun AS (
      INSERT INTO sessions (id, key, created_at, last_active_at, message_count)
      SELECT session_id, key, created_at, ended_at, said FROM ends
      WHERE said > 0 AND NOT EXISTS (SELECT 1 FROM moved WHERE moved.id = ends.session_id)
      ON CONFLICT (id) DO UPDATE SET
        last_active_at = greatest(sessions.last_active_at, excluded.last_active_at),
        message_count = sessions.message_count + excluded.message_count
      RETURNING id, number, message_count),
    touched AS (SELECT * FROM moved UNION ALL SELECT * FROM begun),
    appended AS (
      INSERT INTO messages (session, up_to, at, messages_json)
      SELECT touched.number, touched.message_count, ends.ended_at, ends.messages_json
      FROM ends JOIN touched ON touched.id = ends.session_id WHERE said > 0),
    ended AS (
      INSERT INTO turns AS turn (id, shard, agent, session_id, owner, session, up_to, source, status, input, response, model, finish_reason,
        error_json, input_tokens, output_tokens, cost_usd, attempts, created_at, ended_at, idempotency, steps_json)
      SELECT ends.id, ends.shard, ends.agent, ends.session_id, ends.owner, touched.number, touched.message_count, ends.source, ends.status,
        ends.input, ends.response, ends.model, ends.finish_reason, ends.error_json, ends.input_tokens, ends.output_tokens, ends.cost_usd,
        ends.attempts, ends.created_at, ends.ended_at, ends.idempotency, ends.steps_json
      FROM ends LEFT JOIN touched ON touched.id = ends.session_id AND ends.said > 0
      ON CONFLICT (id) DO UPDATE SET
        agent = excluded.agent, session_id = excluded.session_id, owner = coalesce(excluded.owner, turn.owner),
        session = excluded.session, up_to = excluded.up_to, source = excluded.source, status = excluded.status, input = excluded.input,
        response = excluded.response, model = coalesce(excluded.model, turn.model), finish_reason = excluded.finish_reason, error_json = excluded.error_json,
        input_tokens = turn.input_tokens + excluded.input_tokens, output_tokens = turn.output_tokens + excluded.output_tokens,
        cost_usd = turn.cost_usd + excluded.cost_usd,
        attempts = excluded.attempts, created_at = excluded.created_at, ended_at = excluded.ended_at,
        idempotency = coalesce(excluded.idempotency, turn.idempotency), steps_json = excluded.steps_json, checkpoint_json = NULL
        WHERE turn.ended_at IS NULL
      RETURNING id, idempotency, session, up_to),
    answered AS (
      UPDATE inbox SET state = 'done', next_at = NULL, ended_at = ends.ended_at, error = NULL
      FROM ends WHERE inbox.number = ends.message AND ${isOpen('inbox.ended_at')}),
    queued AS (
      ${insertReplies(END_COLUMNS.length + 1, 'ends.message', 'JOIN ends ON ends.place = reply.owner')} RETURNING number)
  SELECT ended.id, ended.idempotency, ended.session, ended.up_to, NULL AS number FROM ended
  UNION ALL SELECT NULL, NULL, NULL, NULL, number FROM queued`

const FINISHED = `
  SELECT id, idempotency, session, up_to, NULL::bigint AS number FROM turns WHERE id = ANY ($1::text[]) AND ended_at IS NOT NULL
  UNION ALL SELECT NULL, NULL, NULL, NULL, number FROM outbox WHERE inbox = ANY ($2::bigint[]) AND client_id = ANY ($3::text[])`

interface FinishRow {
  readonly id: string | null
  readonly idempotency: string | null
  readonly session: number | null
  readonly up_to: number | null
  readonly number: number | null
}

interface Ended {
  readonly idempotency: string | null
  readonly session: number | null
  readonly upTo: number | null
  readonly replies: readonly number[]
}

interface End {
  readonly end: TurnEnd
  readonly key: string | null
  readonly messagesJson: string
  readonly errorJson: string | null
}

const FINISH_KIND: Kind<End, Ended | undefined> = {
  keys: ({ end: { id, sessionId, delivery } }) => [
    `turn ${id}`,
    ...(sessionId === null ? [] : [`session ${sessionId}`]),
    ...(delivery ? [`message ${delivery.inbox}`] : []),
  ],
  statements: (ends) => [
    sql(
      FINISH,
      ...columnsOf(
        ends.map((end, place) => endValues(end, place)),
        ...END_COLUMNS.map((_, at) => (values: readonly unknown[]) => values[at]),
      ),
      ...replyValues(ends.flatMap(({ end }, owner) => (end.delivery?.replies ?? []).map((reply) => ({ owner, reply })))),
    ),
  ],
  results(ends, [rows = []]) {
    const all = rows as unknown as FinishRow[]
    const ended = new Map(all.map((row) => [row.id, row]))
    // The numbers grow in the order in which the replies were given.
    const numbers = all.flatMap(({ number }) => number ?? []).toSorted((a, b) => a - b)
    let at = 0
    return ends.map(({ end }) => {
      const row = ended.get(end.id)
      if (!row) return undefined
      const replies = numbers.slice(at, at + (end.delivery?.replies.length ?? 0))
      at += replies.length
      return { idempotency: row.idempotency, session: row.session, upTo: row.up_to, replies }
    })
  },
  readAgain: (ends) => {
    const deliveries = ends.flatMap(({ end }) => end.delivery ?? [])
    const ids = ends.map(({ end }) => end.id)
    const clientIds = deliveries.flatMap(({ replies }) => replies.map(({ clientId }) => clientId))
    return [
      sql(
        FINISHED,
        ids,
        deliveries.map(({ inbox }) => inbox),
        clientIds,
      ),
    ]
  },
}

function endValues({ end, key, messagesJson, errorJson }: End, place: number): readonly unknown[] {
  const { id, agent, sessionId, messages, delivery } = end
  const isInSession = sessionId !== null && messages.length > 0
  return [
    place,
    id,
    agent,
    sessionId,
    sessionId === null ? null : parseAgentKey(sessionId).key,
    end.owner ?? null,
    end.source,
    end.status,
    isInSession && inputIn(messages) === end.input ? null : end.input,
    isInSession && responseIn(messages) === end.response ? null : end.response,
    end.model,
    end.finishReason === 'stop' ? null : (end.finishReason ?? null),
    errorJson,
    amount(end.inputTokens),
    amount(end.outputTokens),
    amount(end.costUsd),
    end.attempts,
    end.createdAtMs,
    end.endedAtMs,
    key,
    shardOfTurn(sessionId, id),
    delivery?.inbox ?? null,
    isInSession ? messagesJson : null,
    isInSession ? messages.length : 0,
    stepsJson(end),
  ]
}

export interface TurnsOptions {
  readonly keys: WatchedKeyTable
  readonly histories: Histories
  readonly process: string
  /** True under the lease of a session: turns start for this process, and not for the owner of their shard. */
  readonly isDirect: boolean
}

/** The turn store of the port. It keeps the idempotency keys and cached histories in step with the database. */
export function createTurns(db: Database, { keys, histories, process, isDirect }: TurnsOptions): TurnStore {
  const { writer } = db
  return {
    async enqueue({ id, agent, sessionId, owner = null, source, input, createdAtMs, context, idempotency, isDirect: runsHere }) {
      const key = idempotency ? hashKey(idempotency) : null
      const contextJson = JSON.stringify(context) ?? null
      const shard = shardOfTurn(sessionId, id)
      if (key !== null) keys.queueing(key, id)
      const enqueue = sql(
        ENQUEUE,
        id,
        agent,
        sessionId,
        owner,
        source,
        input,
        createdAtMs,
        contextJson,
        key,
        shard,
        runsHere ? process : null,
        (key === null ? undefined : keys.takeClaimedSince(key)) ?? createdAtMs,
      )
      const added = await writer.write(...(key === null ? [enqueue] : [sql(LOCK_KEY, key), enqueue]))
      if (added.length === 0) throw new AppError('conflict', 'A turn with this id or idempotency key already exists.')
      if (key !== null) keys.queued(key, id)
    },
    async start(id) {
      const [row] = await writer.write<{ attempts: number }>(sql(START, id, isDirect ? process : null))
      if (!row) throw noSuchTurn()
      return row.attempts
    },
    async waits(id, isWaiting) {
      await writer.write(sql(isWaiting ? UNCOUNT : COUNT, id))
    },
    async checkpoint(id, messages) {
      const changed = await writer.write(sql(CHECKPOINT, id, JSON.stringify(messages)))
      if (changed.length === 0) throw noSuchTurn()
    },
    async addUsage(id, { inputTokens, outputTokens, costUsd, model }) {
      await writer.write(sql(ADD_USAGE, id, amount(inputTokens), amount(outputTokens), amount(costUsd), model))
    },
    async finish(end) {
      const key = end.idempotency ? hashKey(end.idempotency) : null
      try {
        const messagesJson = JSON.stringify(end.messages)
        const ended = await writer.add(FINISH_KIND, { end, key, messagesJson, errorJson: end.error && JSON.stringify(end.error) })
        if (!ended) throw new AppError('conflict', 'The turn has ended already.')
        if (ended.session !== null && ended.upTo !== null) histories.appended(ended.session, ended.upTo, messagesJson)
        if (ended.idempotency !== null) keys.ended(ended.idempotency, end.id, end.status === 'done' ? end.endedAtMs : undefined)
        return ended.replies
      } catch (error) {
        if (key !== null) keys.release(key)
        throw error
      }
    },
    async get(id) {
      const row = await db.get<StoredTurn>(GET, id)
      return row && toTurnRow(row)
    },
    requestAbort: async (id, owner) => (await writer.write(sql(REQUEST_ABORT, id, owner ?? null))).length > 0,
    openSessions: async () => openSessionsOf(await db.all<OpenColumns>(OPEN_SESSIONS)),
    spentUsd: async (sinceMs) => (await db.get<{ usd: number }>(SPENT, sinceMs, Math.ceil(sinceMs / QUARTER_MS)))?.usd ?? 0,
    async costs({ sinceMs, untilMs, periodMs, offsetMs }) {
      const rows = await db.all<CostColumns>(COSTS, sinceMs, untilMs, periodMs, offsetMs)
      return rows.map((row) => periodCost(row, { periodMs, offsetMs }))
    },
    async list({ limit, before, status = null, agent = null, owner = null, sessionId = null, sinceMs = null, sender = null }) {
      const place = [before?.endedAtMs ?? null, before?.id ?? null]
      return (await db.all<ListedColumns>(LISTED, limit, status, agent, owner, sessionId, ...place, sinceMs, sender)).map(listedTurn)
    },
  }
}

export function ownedTurns(
  db: Database,
  process: string,
  shards: ShardRange | null,
): Pick<OwnedTurnStore, 'unfinished' | 'abortsRequested'> {
  return {
    async unfinished(limit) {
      return shards ? (await db.shards.all<UnfinishedColumns & Row>(UNFINISHED, shards, limit, limit, process)).map(toUnfinished) : []
    },
    async abortsRequested() {
      return shards ? (await db.shards.all<{ id: string }>(TO_ABORT, shards, null)).map(({ id }) => id) : []
    },
  }
}

/** Lists the turns that this process is to run again; see `ClusterTurns.abandoned`. */
export const abandonedTurns = async (db: Database, process: string, limit: number): Promise<UnfinishedTurn[]> =>
  (await db.all<UnfinishedColumns>(ABANDONED, process, limit)).map(toUnfinished)

/** Lists the stored turns of this process that a caller asked to abort. */
export const abortsOf = async (db: Database, process: string): Promise<string[]> =>
  (await db.all<{ id: string }>(ABORTS_OF, process)).map(({ id }) => id)

interface StoredTurn extends TurnColumns {
  /** The message that a turn without input answers. */
  readonly message_json: string | null
}

interface UnfinishedColumns extends StoredTurn {
  readonly checkpoint_json: string | null
}

const toUnfinished = (row: UnfinishedColumns): UnfinishedTurn => ({
  ...toTurnRow(row),
  checkpoint: JSON.parse(row.checkpoint_json ?? '[]'),
})

const toTurnRow = ({ message_json, ...row }: StoredTurn): TurnRow =>
  toTurn(message_json === null ? row : { ...row, input: row.input ?? JSON.parse(message_json).text })

/** Token counts and costs come from a provider. An invalid number must not prevent the end of a turn. */
const amount = (value: number): number => (Number.isFinite(value) ? value : 0)

const noSuchTurn = (): AppError => new AppError('not_found', 'There is no unfinished turn with this id.')

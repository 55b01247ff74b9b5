/** Turns, and the single transaction that ends one: its row, its messages, its replies and its inbox message. */
import type { SQLInputValue } from 'node:sqlite'
import { AppError, type TurnEnd, type TurnStore } from '@sluice/sdk'
import type { Database } from '../connection/database.ts'
import type { Writer } from '../connection/group-commit.ts'
import { hashKey } from './hashed-keys.ts'
import type { Chunk, HistoryCache } from './history-cache.ts'
import type { KeyTable } from './key-table.ts'
import { END_MESSAGE } from './message-attempt.ts'
import { prepareReplies } from './replies.ts'
import {
  COLUMNS,
  type CostColumns,
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
  waitsForPerson,
} from './turn-row.ts'

/** The longest list of costs: more rows would be of no use to a person. */
const PERIODS_MAX = 20_000
// Two processes may claim one key before either has stored its turn, so the key is checked again in the commit that stores it.
const isFreeKey = (key: string, createdAt: string): string => `
  NOT EXISTS (SELECT 1 FROM turns WHERE idempotency = ${key} AND idempotency IS NOT NULL AND ended_at IS NULL)
  AND NOT EXISTS (SELECT 1 FROM turns WHERE idempotency = ${key} AND idempotency IS NOT NULL AND status = 'done' AND ended_at > ${createdAt})`
const ENQUEUE = `
  INSERT INTO turns (id, agent, session_id, owner, source, status, input, created_at, context_json, idempotency)
  SELECT ?1, ?2, ?3, ?4, ?5, 'queued', ?6, ?7, ?8, ?9 WHERE ${isFreeKey('?9', '?7')}
  ON CONFLICT DO NOTHING`
const START = `
  UPDATE turns SET status = 'running', starts = starts + 1, attempts = attempts + NOT ${waitsForPerson('turns.id')} WHERE id = ? AND ended_at IS NULL
  RETURNING attempts`
// An attempt that resumed a turn with an open approval was not counted, so it is not uncounted either.
const UNCOUNT_ATTEMPT = `
  UPDATE turns SET attempts = max(attempts - 1, 0) WHERE id = ? AND ended_at IS NULL AND NOT ${waitsForPerson('turns.id')} RETURNING inbox`
const UNCOUNT_MESSAGE_ATTEMPT = "UPDATE inbox SET attempts = max(attempts - 1, 0) WHERE number = ? AND state = 'running'"
const COUNT_ATTEMPT = 'UPDATE turns SET attempts = attempts + 1 WHERE id = ? AND ended_at IS NULL RETURNING inbox'
const COUNT_MESSAGE_ATTEMPT = "UPDATE inbox SET attempts = attempts + 1 WHERE number = ? AND state = 'running'"
const CHECKPOINT = 'UPDATE turns SET checkpoint_json = ? WHERE id = ? AND ended_at IS NULL'
const ADD_USAGE = `
  UPDATE turns SET input_tokens = input_tokens + ?, output_tokens = output_tokens + ?, cost_usd = cost_usd + ?, model = coalesce(?, model)
  WHERE id = ? AND ended_at IS NULL`
const FINISH = `
  INSERT INTO turns (
    agent, session_id, owner, session, up_to, source, status, input, response, model, finish_reason, error_json,
    input_tokens, output_tokens, cost_usd, attempts, created_at, ended_at, steps_json, idempotency, id
  ) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21
  WHERE ?20 IS NULL OR (${isFreeKey('?20', '?17')}) ON CONFLICT DO NOTHING`
const FINISH_STORED = `
  UPDATE turns SET
    agent = ?, session_id = ?, owner = coalesce(?, owner), session = ?, up_to = ?, source = ?, status = ?, input = ?, response = ?, model = coalesce(?, model),
    finish_reason = ?, error_json = ?, input_tokens = input_tokens + ?, output_tokens = output_tokens + ?, cost_usd = cost_usd + ?, attempts = ?, created_at = ?, ended_at = ?, steps_json = ?,
    idempotency = coalesce(?, idempotency), checkpoint_json = NULL
  WHERE id = ? AND ended_at IS NULL
  RETURNING idempotency`
// What triggers do at the end of a stored turn. With a trigger on inserts, SQLite copies each page that an insert changes.
const END_ADMISSION = 'UPDATE admissions SET open = 0 WHERE id = ?'
const ADD_COSTS = `
  INSERT INTO costs_by_model (quarter, agent, model, usd, turns, input_tokens, output_tokens) VALUES (?, ?, ?, ?, 1, ?, ?)
  ON CONFLICT DO UPDATE SET usd = usd + excluded.usd, turns = turns + 1, input_tokens = input_tokens + excluded.input_tokens,
    output_tokens = output_tokens + excluded.output_tokens`
// An insert that ends as an update writes the page of AUTOINCREMENT for nothing, so most turns only update.
const TOUCH_SESSION = `
  UPDATE sessions SET last_active_at = max(last_active_at, ?1), message_count = message_count + ?2 WHERE id = ?3
  RETURNING number, message_count`
const ADD_SESSION = `
  INSERT INTO sessions (id, created_at, last_active_at, message_count) VALUES (?, ?, ?, ?) RETURNING number, message_count`
const APPEND = 'INSERT INTO messages (session, up_to, messages_json, at) VALUES (?, ?, ?, ?)'
const UNDO_APPEND = 'DELETE FROM messages WHERE session = ? AND up_to = ?'
const UNDO_TOUCH_SESSION = 'UPDATE sessions SET message_count = message_count - ? WHERE number = ?'
const GET = `SELECT ${COLUMNS} FROM turns AS turn WHERE id = ?`
const REQUEST_ABORT = 'UPDATE turns SET abort_requested = 1 WHERE id = ?1 AND ended_at IS NULL AND (?2 IS NULL OR owner = ?2)'
const OPEN_SESSIONS = `
  SELECT agent, session_id, owner FROM turns WHERE ended_at IS NULL AND inbox IS NULL
  UNION SELECT '', session, NULL FROM inbox WHERE state IN ('pending', 'running') AND state <> 'done'`
const SPENT = `
  SELECT (SELECT total(cost_usd) FROM turns WHERE ended_at >= ?1 AND cost_usd <> 0)
    + (SELECT total(usd) FROM dropped_costs WHERE quarter >= ?2) AS usd`

// Reads the sums of quarters, because adding up the turns takes 2 s for a million.
const COSTS = `
  SELECT CAST((quarter * ${QUARTER_MS}.0 - ?4) / ?3 AS INTEGER) AS period, agent, nullif(model, '') AS model, total(usd) AS usd,
    sum(turns) AS turns, total(input_tokens) AS input_tokens, total(output_tokens) AS output_tokens
  FROM costs_by_model WHERE quarter >= ?1 AND quarter < ?2
  GROUP BY period, agent, model ORDER BY period, agent, model LIMIT ${PERIODS_MAX}`
// Each filter is part of the text only where it applies, so that the planner sees what an index can do.
const LISTED = `
  id, agent, session_id AS sessionId, owner, source, status, model, finish_reason AS finishReason, error_json AS errorJson,
  input_tokens AS inputTokens, output_tokens AS outputTokens, cost_usd AS costUsd, attempts, created_at AS createdAtMs, ended_at AS endedAtMs,
  (SELECT sender FROM inbox WHERE number = turns.inbox) AS sender`
/** The filters, from the one that leaves the fewest turns, each with the further condition of its partial index. */
const FILTERS = [
  { name: 'sessionId', column: 'session_id', common: undefined },
  { name: 'owner', column: 'owner', common: undefined },
  // Nearly all turns have this state and this agent: a list of them is in the order of all turns.
  { name: 'status', column: 'status', common: 'done' },
  { name: 'agent', column: 'agent', common: 'main' },
] as const

/** Returns the conditions and values of a list. Only the first condition may use an index. */
function conditionsOf(filter: Omit<Parameters<TurnStore['list']>[0], 'limit' | 'before' | 'sinceMs' | 'sender'>): {
  conditions: string[]
  values: string[]
} {
  const given = FILTERS.flatMap(({ name, ...rest }) => {
    const value = filter[name]
    return value === undefined ? [] : [{ ...rest, value }]
  })
  const indexed = given.find(({ common, value }) => value !== common)
  const conditions = given.map((one) => {
    if (one !== indexed) return `+${one.column} = ?`
    return `${one.column} = ?${one.common === undefined ? '' : ` AND ${one.column} <> '${one.common}'`}`
  })
  return { conditions, values: given.map(({ value }) => value) }
}

/** The turn store of the port. It keeps the idempotency keys and cached histories in step with the file. */
export function createTurns(db: Database, writer: Writer, keys: KeyTable, histories: HistoryCache): TurnStore {
  return {
    async enqueue({ id, agent, sessionId, owner = null, source, input, createdAtMs, context, idempotency }) {
      const key = idempotency ? hashKey(idempotency) : null
      const contextJson = JSON.stringify(context) ?? null
      if (key !== null) keys.queueing(key, id)
      const added = await writer.write(() => db.run(ENQUEUE, id, agent, sessionId, owner, source, input, createdAtMs, contextJson, key))
      if (added === 0) throw new AppError('conflict', 'A turn with this id or idempotency key already exists.')
      if (key !== null) keys.queued(key, id)
    },
    async start(id) {
      const row = await writer.write(() => db.get<{ attempts: number }>(START, id))
      if (!row) throw noSuchTurn()
      return row.attempts
    },
    async waits(id, isWaiting) {
      const [ofTurn, ofMessage] = isWaiting ? [UNCOUNT_ATTEMPT, UNCOUNT_MESSAGE_ATTEMPT] : [COUNT_ATTEMPT, COUNT_MESSAGE_ATTEMPT]
      await writer.write(() => {
        const turn = db.get<{ inbox: number | null }>(ofTurn, id)
        if (turn && turn.inbox !== null) db.run(ofMessage, turn.inbox)
      })
    },
    async checkpoint(id, messages) {
      const json = JSON.stringify(messages)
      const changed = await writer.write(() => db.run(CHECKPOINT, json, id))
      if (changed === 0) throw noSuchTurn()
    },
    async addUsage(id, { inputTokens, outputTokens, costUsd, model }) {
      await writer.write(() => db.run(ADD_USAGE, amount(inputTokens), amount(outputTokens), amount(costUsd), model, id))
    },
    async finish(end) {
      const key = end.idempotency ? hashKey(end.idempotency) : null
      if (key !== null) keys.queueing(key, end.id)
      try {
        const ended = await writer.write(prepareFinish(db, end, key))
        if (!ended) throw new AppError('conflict', 'The turn has ended already.')
        if (ended.chunk && end.sessionId !== null) histories.append(end.sessionId, ended.chunk)
        if (ended.idempotency !== null) keys.ended(ended.idempotency, end.id, end.status === 'done' ? end.endedAtMs : undefined)
        return ended.replies
      } catch (error) {
        if (key !== null) keys.release(key)
        throw error
      }
    },
    async get(id) {
      const row = db.read(() => db.get<TurnColumns>(GET, id))
      return row && toTurn(row)
    },
    async openSessions() {
      return openSessionsOf(await db.page<OpenColumns>(OPEN_SESSIONS))
    },
    requestAbort: (id, owner) => writer.write(() => db.run(REQUEST_ABORT, id, owner ?? null) > 0),
    async spentUsd(sinceMs) {
      const [row] = await db.page<{ usd: number }>(SPENT, sinceMs, Math.ceil(sinceMs / QUARTER_MS))
      return row?.usd ?? 0
    },
    async costs({ sinceMs, untilMs, periodMs, offsetMs }) {
      const rows = await db.page<CostColumns>(COSTS, Math.ceil(sinceMs / QUARTER_MS), Math.ceil(untilMs / QUARTER_MS), periodMs, offsetMs)
      return rows.map((row) => periodCost(row, { periodMs, offsetMs }))
    },
    async list({ limit, before, sinceMs, sender, ...filter }) {
      const { conditions, values: named } = conditionsOf(filter)
      const rules = [
        'ended_at IS NOT NULL',
        ...conditions,
        ...(before ? ['(ended_at, id) < (?, ?)'] : []),
        ...(sinceMs === undefined ? [] : ['ended_at >= ?']),
        ...(sender === undefined ? [] : ['EXISTS (SELECT 1 FROM inbox WHERE number = turns.inbox AND sender = ?)']),
      ]
      const values = [
        ...named,
        ...(before ? [before.endedAtMs, before.id] : []),
        ...[sinceMs, sender].filter((one) => one !== undefined),
        limit,
      ]
      const sql = `SELECT ${LISTED} FROM turns WHERE ${rules.join(' AND ')} ORDER BY ended_at DESC, id DESC LIMIT ?`
      return (await db.page<ListedColumns>(sql, ...values)).map(listedTurn)
    },
  }
}

interface Ended {
  /** The outbox numbers of the replies. */
  readonly replies: readonly number[]
  /** The hash of the turn's idempotency key. */
  readonly idempotency: string | null
  /** The messages added to the session. */
  readonly chunk?: Chunk
}

interface SessionCount {
  readonly number: number
  readonly message_count: number
}

/** Builds the JSON outside the transaction. The returned write ends the turn; it returns undefined when the turn had ended before. */
function prepareFinish(db: Database, end: TurnEnd, key: string | null): () => Ended | undefined {
  const { id, sessionId, messages } = end
  const errorJson = end.error && JSON.stringify(end.error)
  const steps = stepsJson(end)
  const json = JSON.stringify(messages)
  const isInSession = sessionId !== null && messages.length > 0
  const input = isInSession && inputIn(messages) === end.input ? null : end.input
  const response = isInSession && responseIn(messages) === end.response ? null : end.response
  const [inputTokens, outputTokens, costUsd] = [amount(end.inputTokens), amount(end.outputTokens), amount(end.costUsd)]
  const endMessage = prepareMessageEnd(db, end)
  const insert = (row: readonly SQLInputValue[]): boolean => {
    if (db.run(FINISH, ...row) === 0) return false
    db.run(END_ADMISSION, id)
    db.run(ADD_COSTS, Math.trunc(end.endedAtMs / QUARTER_MS), end.agent, end.model ?? '', costUsd, inputTokens, outputTokens)
    return true
  }
  return () => {
    const session = isInSession ? touchSession(db, sessionId, end) : undefined
    const [number, upTo] = session ? [session.number, session.message_count] : [null, null]
    if (session) db.run(APPEND, number, upTo, json, end.endedAtMs)
    const row = [
      end.agent,
      sessionId,
      end.owner ?? null,
      number,
      upTo,
      end.source,
      end.status,
      input,
      response,
      end.model,
      end.finishReason === 'stop' ? null : (end.finishReason ?? null),
      errorJson,
      inputTokens,
      outputTokens,
      costUsd,
      end.attempts,
      end.createdAtMs,
      end.endedAtMs,
      steps,
      key,
      id,
    ]
    // Most turns were never queued, and a plain insert costs half as much as an upsert.
    const ended = insert(row) ? { idempotency: key } : db.get<{ idempotency: string | null }>(FINISH_STORED, ...row)
    if (ended) {
      const chunk = session && { upTo: session.message_count, json }
      return { idempotency: ended.idempotency, replies: endMessage(), ...(chunk && { chunk }) }
    }
    if (session) {
      db.run(UNDO_APPEND, number, upTo)
      db.run(UNDO_TOUCH_SESSION, messages.length, number)
    }
    return undefined
  }
}

/** Adds the messages to the count of a session, which begins with its first turn. */
function touchSession(db: Database, id: string, { messages, createdAtMs, endedAtMs }: TurnEnd): SessionCount | undefined {
  const touched = db.get<SessionCount>(TOUCH_SESSION, endedAtMs, messages.length, id)
  return touched ?? db.get<SessionCount>(ADD_SESSION, id, createdAtMs, endedAtMs, messages.length)
}

/** Returns the part of the write that queues the replies and ends the inbox message. */
function prepareMessageEnd(db: Database, { delivery, endedAtMs }: TurnEnd): () => readonly number[] {
  if (!delivery) return () => []
  const queue = prepareReplies(db, delivery.replies, delivery.inbox)
  return () => {
    db.run(END_MESSAGE, endedAtMs, delivery.inbox)
    return queue()
  }
}

/** Token counts and costs come from a provider. An invalid number must not prevent the end of a turn. */
const amount = (value: number): number => (Number.isFinite(value) ? value : 0)

const noSuchTurn = (): AppError => new AppError('not_found', 'There is no unfinished turn with this id.')

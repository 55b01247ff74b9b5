/** A turn, as a row of its table and as callers see it. */
import {
  agentKey,
  type FinishReason,
  type ListedTurn,
  type ModelMessage,
  type PeriodCost,
  type TurnEnd,
  type TurnRow,
  type TurnStatus,
} from '@sluice/sdk'

export interface TurnColumns {
  readonly id: string
  readonly agent: string
  readonly session_id: string | null
  readonly owner: string | null
  readonly source: string
  readonly status: TurnStatus
  readonly input: string | null
  readonly response: string | null
  readonly model: string | null
  /** Null for a complete answer. */
  readonly finish_reason: Exclude<FinishReason, 'stop'> | null
  readonly error_json: string | null
  readonly input_tokens: number
  readonly output_tokens: number
  readonly cost_usd: number
  readonly attempts: number
  readonly starts: number
  readonly created_at: number
  readonly ended_at: number | null
  readonly context_json: string | null
  readonly inbox: number | null
  readonly steps_json: string | null
  /** The messages of the turn, if its session still has them. */
  readonly messages_json: string | null
}

/** A session with work that has not ended, or the columns of a turn without one. */
export interface OpenColumns {
  readonly agent: string
  readonly session_id: string | null
  readonly owner: string | null
}

/** Returns the sessions of `TurnStore.openSessions`. */
export const openSessionsOf = (rows: readonly OpenColumns[]): string[] => [
  ...new Set(rows.map(({ agent, session_id, owner }) => session_id ?? agentKey(agent, `${owner ?? ''}/`))),
]

/** The columns of `turns AS turn`. */
export const COLUMNS =
  'id, agent, session_id, owner, source, status, input, response, model, finish_reason, error_json, input_tokens, output_tokens, cost_usd, attempts, starts, created_at, ended_at, context_json, inbox, steps_json, (SELECT messages_json FROM messages WHERE messages.session = turn.session AND messages.up_to = turn.up_to) AS messages_json'

/** Fills in the texts that the row leaves to its session's messages. */
export function toTurn(row: TurnColumns): TurnRow {
  const messages: ModelMessage[] = JSON.parse(row.messages_json ?? '[]')
  return {
    id: row.id,
    agent: row.agent,
    sessionId: row.session_id,
    owner: row.owner,
    source: row.source,
    status: row.status,
    input: row.input ?? inputIn(messages) ?? '',
    response: row.response ?? responseIn(messages) ?? null,
    model: row.model,
    finishReason: row.status === 'done' ? (row.finish_reason ?? 'stop') : null,
    error: JSON.parse(row.error_json ?? 'null'),
    inputTokens: row.input_tokens,
    outputTokens: row.output_tokens,
    costUsd: row.cost_usd,
    attempts: row.attempts,
    starts: row.starts,
    createdAtMs: row.created_at,
    endedAtMs: row.ended_at,
    inbox: row.inbox,
    steps: JSON.parse(row.steps_json ?? '[]'),
    context: JSON.parse(row.context_json ?? 'null'),
  }
}

/** Returns the steps as their column has them; null for none. */
export const stepsJson = ({ steps = [] }: Pick<TurnEnd, 'steps'>): string | null => (steps.length > 0 ? JSON.stringify(steps) : null)

// The session's messages hold the texts of a turn. Its own row repeats a text only if it differs from theirs.

/** Returns the text of the first user message. */
export const inputIn = (messages: readonly ModelMessage[]): string | undefined => textOf(messages.find(({ role }) => role === 'user'))

/** Returns the text of the last assistant message. */
export const responseIn = (messages: readonly ModelMessage[]): string | undefined =>
  textOf(messages.findLast(({ role }) => role === 'assistant'))

function textOf(message: ModelMessage | undefined): string | undefined {
  if (!message || message.role === 'system') return undefined
  return message.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')
}

/** Returns the SQL condition that a turn waits for a person, because the approval of a tool call is open. `turn` is the SQL of its id. */
export const waitsForPerson = (turn: string): string =>
  `EXISTS (SELECT 1 FROM approvals WHERE run_id = ${turn} AND gate = 'tool' AND state = 'pending')`

/** Every time zone's days and months begin at a multiple of this. */
export const QUARTER_MS = 15 * 60_000

/** Costs of one period, as the database adds them up. */
export interface CostColumns {
  readonly period: number
  readonly agent: string
  readonly model: string | null
  readonly usd: number
  readonly turns: number
  readonly input_tokens: number
  readonly output_tokens: number
}

/** A listed turn, as a row of its table. */
export type ListedColumns = Omit<ListedTurn, 'error'> & { readonly errorJson: string | null }

export const listedTurn = ({ errorJson, finishReason, ...row }: ListedColumns): ListedTurn => ({
  ...row,
  finishReason: row.status === 'done' ? (finishReason ?? 'stop') : null,
  error: JSON.parse(errorJson ?? 'null'),
})

export const periodCost = (
  { period, agent, model, usd, turns, input_tokens, output_tokens }: CostColumns,
  { periodMs, offsetMs }: { readonly periodMs: number; readonly offsetMs: number },
): PeriodCost => ({
  atMs: period * periodMs + offsetMs,
  agent,
  model,
  costUsd: usd,
  turns,
  inputTokens: input_tokens,
  outputTokens: output_tokens,
})

/** The timeline of one turn: its message, its calls, the questions to people, and its replies, in the order of their times. */
import { isoTime } from '@sluice/kit'
import type { Runtime } from '@sluice/runtime'
import type { Approval, InboxEntry, TurnRow, TurnStep } from '@sluice/sdk'
import * as v from 'valibot'

const APPROVALS_MAX = 200

const nullableText = v.nullable(v.string())
const nullableNumber = v.nullable(v.number())

export const timelineSchema = v.pipe(
  v.array(
    v.object({
      kind: v.picklist(['message', 'model', 'tool', 'approval', 'reply', 'end']),
      at: v.string(),
      name: v.pipe(nullableText, v.description('The model, the tool, the title of the approval, or the channel')),
      state: v.pipe(
        v.string(),
        v.description('`ok`, `error` or `aborted` of a call; the state of an approval, a message, a reply or the turn'),
      ),
      took_ms: nullableNumber,
      finish_reason: v.pipe(nullableText, v.description('How the reply of a model ended, such as `tool-calls`')),
      error: nullableText,
      input_tokens: nullableNumber,
      output_tokens: nullableNumber,
      cost_usd: nullableNumber,
      attempts: v.pipe(nullableNumber, v.description('Of a message or a reply')),
      number: v.pipe(nullableNumber, v.description('The number of the message or the reply at `/api/deliveries`')),
      by: v.pipe(nullableText, v.description('Who decided the approval')),
    }),
  ),
  v.description('What happened in the turn, oldest first: at most the newest 200 calls since its last start'),
)

export type TimelineEntry = v.InferOutput<typeof timelineSchema>[number]

const EMPTY = {
  name: null,
  took_ms: null,
  finish_reason: null,
  error: null,
  input_tokens: null,
  output_tokens: null,
  cost_usd: null,
  attempts: null,
  number: null,
  by: null,
} as const

type Timed = TimelineEntry & { readonly atMs: number }
const entry = (atMs: number, given: Pick<TimelineEntry, 'kind' | 'state'> & Partial<TimelineEntry>): Timed => ({
  ...EMPTY,
  ...given,
  at: isoTime(atMs),
  atMs,
})

/** Operators also see the deliveries. */
export async function timelineOf({ store: { approvals, inbox } }: Runtime, turn: TurnRow, isOperator: boolean): Promise<TimelineEntry[]> {
  const [asked, message] = await Promise.all([
    approvals.list({ limit: APPROVALS_MAX, runId: turn.id }),
    isOperator && turn.inbox !== null ? inbox.get(turn.inbox) : undefined,
  ])
  const entries = [
    ...(message ? messageEntries(message) : []),
    ...turn.steps.map(stepEntry),
    ...asked.map(approvalEntry),
    ...(turn.endedAtMs === null ? [] : [endEntry(turn, turn.endedAtMs)]),
    ...(message?.replies ?? []).map(({ number, channel, state, attempts, createdAtMs, endedAtMs, error }) =>
      entry(createdAtMs, { kind: 'reply', name: channel, state, attempts, number, error, took_ms: tookMs(createdAtMs, endedAtMs) }),
    ),
  ]
  return entries.toSorted((a, b) => a.atMs - b.atMs).map(({ atMs: _, ...shown }) => shown)
}

const tookMs = (fromMs: number, untilMs: number | null): number | null => (untilMs === null ? null : Math.max(0, untilMs - fromMs))

const messageEntries = ({ number, channel, state, attempts, receivedAtMs, error }: InboxEntry): Timed[] => [
  entry(receivedAtMs, { kind: 'message', name: channel, state, attempts, number, error }),
]

const stepEntry = ({ kind, name, atMs, tookMs: took_ms, outcome, finish, error, inputTokens, outputTokens, costUsd }: TurnStep): Timed =>
  entry(atMs, {
    kind,
    name,
    state: outcome,
    took_ms,
    finish_reason: finish ?? null,
    error: error ?? null,
    input_tokens: inputTokens ?? null,
    output_tokens: outputTokens ?? null,
    cost_usd: costUsd ?? null,
  })

const approvalEntry = ({ title, state, by, createdAtMs, decidedAtMs }: Approval): Timed =>
  entry(createdAtMs, { kind: 'approval', name: title, state, by, took_ms: tookMs(createdAtMs, decidedAtMs) })

const endEntry = (turn: TurnRow, endedAtMs: number): Timed =>
  entry(endedAtMs, {
    kind: 'end',
    state: turn.status,
    took_ms: tookMs(turn.createdAtMs, endedAtMs),
    finish_reason: turn.finishReason,
    error: turn.error && `${turn.error.code}: ${turn.error.message}`,
    input_tokens: turn.inputTokens,
    output_tokens: turn.outputTokens,
    cost_usd: turn.costUsd,
  })

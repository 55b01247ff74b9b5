/** The summaries of sessions: one row for each session that has one. */
import type { SessionStore, SessionSummary } from '@sluice/sdk'
import { type Statement, statement } from './cold-database.ts'

export interface SummaryColumns {
  readonly up_to: number
  readonly up_to_at: number
  readonly text: string
  readonly model: string
  readonly at: number
  readonly untrusted: unknown
}

export const SUMMARY = 'up_to, up_to_at, text, model, at, untrusted'
export const GET_SUMMARY = `SELECT ${SUMMARY} FROM session_summaries WHERE session = (SELECT number FROM sessions WHERE id = $1)`
// The last condition counts where another process has stored a summary meanwhile.
const PUT = `
  INSERT INTO session_summaries (session, ${SUMMARY})
  SELECT number, $4, $5, $6, $7, $8, $9 FROM sessions WHERE id = $1 AND message_count = $2
    AND coalesce((SELECT up_to FROM session_summaries WHERE session = number), 0) = $3
  ON CONFLICT (session) DO UPDATE SET up_to = excluded.up_to, up_to_at = excluded.up_to_at, text = excluded.text, model = excluded.model,
    at = excluded.at, untrusted = excluded.untrusted
    WHERE session_summaries.up_to = $3
  RETURNING session`

/** The statement has the parameters of `SessionStore.summarize`, and returns a row when it has stored the summary. */
export function putSummary(...[id, seen, summary]: Parameters<SessionStore['summarize']>): Statement {
  const { text, upTo, upToMs, model, atMs, untrusted } = summary
  return statement(PUT, id, seen.upTo, seen.summary?.upTo ?? 0, upTo, upToMs, text.toWellFormed(), model, atMs, untrusted)
}

export const toSummary = (row: SummaryColumns): SessionSummary => ({
  text: row.text,
  upTo: row.up_to,
  upToMs: row.up_to_at,
  model: row.model,
  atMs: row.at,
  untrusted: Boolean(row.untrusted),
})

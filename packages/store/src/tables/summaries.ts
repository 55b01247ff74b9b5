/** The summaries of sessions: one row for each session that has one. */
import type { SessionStore, SessionSummary } from '@sluice/sdk'
import type { Database } from '../connection/database.ts'

interface SummaryColumns {
  readonly up_to: number
  readonly up_to_at: number
  readonly text: string
  readonly model: string
  readonly at: number
  readonly untrusted: number
}

const GET = `
  SELECT up_to, up_to_at, text, model, at, untrusted FROM session_summaries
  WHERE session = (SELECT number FROM sessions WHERE id = ?)`
const PUT = `
  INSERT INTO session_summaries (session, up_to, up_to_at, text, model, at, untrusted)
  SELECT number, ?4, ?5, ?6, ?7, ?8, ?9 FROM sessions
  WHERE id = ?1 AND message_count = ?2
    AND coalesce((SELECT up_to FROM session_summaries WHERE session = number), 0) = ?3
  ON CONFLICT (session) DO UPDATE SET
    up_to = excluded.up_to, up_to_at = excluded.up_to_at, text = excluded.text, model = excluded.model, at = excluded.at,
    untrusted = excluded.untrusted`

export function getSummary(db: Database, id: string): SessionSummary | undefined {
  const row = db.get<SummaryColumns>(GET, id)
  if (!row) return undefined
  const { up_to: upTo, up_to_at: upToMs, text, model, at: atMs, untrusted } = row
  return { text, upTo, upToMs, model, atMs, untrusted: untrusted === 1 }
}

/** Part of a write, with the parameters and the result of `SessionStore.summarize`. */
export function putSummary(db: Database, ...[id, seen, summary]: Parameters<SessionStore['summarize']>): boolean {
  const { text, upTo, upToMs, model, atMs, untrusted } = summary
  const values = [upTo, upToMs, text.toWellFormed(), model, atMs, Number(untrusted)]
  return db.run(PUT, id, seen.upTo, seen.summary?.upTo ?? 0, ...values) > 0
}

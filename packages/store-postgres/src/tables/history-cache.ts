/** The newest messages of recently active sessions, so that a turn need not read and parse them again. */
import type { SessionSummary } from '@sluice/sdk'
import { HistoryCache, type Recent, SUMMARY, type SummaryColumns, toSummary } from '@sluice/store/shared'
import type { Database } from '../connection/database.ts'

interface HeadColumns extends Partial<Record<keyof SummaryColumns, unknown>> {
  readonly number: number
  readonly message_count: number
  readonly up_to: number | null
}

const HEAD = `
  SELECT number, message_count, summary.* FROM sessions
  LEFT JOIN (SELECT session, ${SUMMARY} FROM session_summaries) AS summary ON summary.session = number WHERE id = $1`
const HISTORY = 'SELECT messages_json AS json FROM messages WHERE session = $1 AND up_to > $2 AND up_to <= $3 ORDER BY up_to'

/**
 * The newest messages of recently active sessions. An entry belongs to the number of a session, which is never given again, and is valid
 * while the session has as many messages and the same summary: each read asks the database for these.
 */
export class Histories {
  readonly #cache = new HistoryCache()

  appended(session: number, upTo: number, json: string): void {
    this.#cache.append(String(session), { upTo, json })
  }

  async recent(db: Database, id: string, limit: number): Promise<Recent> {
    const head = await db.get<HeadColumns>(HEAD, id)
    if (!head) return { messages: [], upTo: 0, summary: undefined }
    const key = String(head.number)
    const summary = head.up_to === null ? undefined : toSummary(head as unknown as SummaryColumns)
    const known = this.#cache.get(key, limit)
    if (known && known.upTo === head.message_count && sameSummary(known.summary, summary)) return known
    const rows = await db.all<{ json: string }>(HISTORY, head.number, head.message_count - limit, head.message_count)
    return this.#cache.fill(key, { chunks: rows.map(({ json }) => json), upTo: head.message_count, summary }, limit)
  }

  clear(): void {
    this.#cache.clear()
  }
}

const sameSummary = (a: SessionSummary | undefined, b: SessionSummary | undefined): boolean =>
  a?.upTo === b?.upTo && a?.atMs === b?.atMs && a?.text === b?.text

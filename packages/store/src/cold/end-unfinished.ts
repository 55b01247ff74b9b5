/**
 * Ends the unfinished work of data that has the state of an earlier time. Daemons went on after that time, so the work may have been done
 * since: nothing of it is repeated by itself, and operators decide about it.
 */
import type { NewAudit, SopRun, StoreRecovered } from '@sluice/sdk'
import { RESTORED } from '../schema/restored-at.ts'
import { toBytes } from '../tables/key-bytes.ts'
import { appendAudit } from './audit-log.ts'
import { all, type Dialect, first, type Steps, statement } from './cold-database.ts'
import { putValue } from './key-value.ts'
import type { RowSigning } from './row-signing.ts'
import { NOTE_END } from './sops.ts'

/** What differs between the databases. */
export interface EndDialect {
  /** The conditions of unfinished replies and messages. */
  readonly replies: string
  readonly messages: string
  /** The columns of inbox and outbox that repeat the state of the rows that end. */
  readonly alsoState: readonly string[]
}

const TURNS = `
  UPDATE turns SET status = 'failed', error_json = $1, ended_at = $2, checkpoint_json = NULL WHERE ended_at IS NULL RETURNING id`
const CANCEL_APPROVALS = `
  UPDATE approvals SET state = 'cancelled', decided_by = 'system', feedback = $1, decided_at = $2 WHERE state = 'pending' RETURNING number`
// No decision is announced that may have been announced already.
const SETTLE_APPROVALS = 'UPDATE approvals SET settled_at = $1 WHERE settled_at IS NULL'
const RUNS = 'SELECT run_json AS json FROM sop_runs WHERE ended_at IS NULL ORDER BY number'
const END_RUN = 'UPDATE sop_runs SET status = $1, run_json = $2, ended_at = $3, held_at = NULL WHERE id = $4'
const HAS_KEY = 'SELECT 1 FROM key_values WHERE owner = $1 AND key = $2'
const CRON = { owner: 'sop', key: 'cron' } as const

interface About {
  readonly end: EndDialect
  readonly dialect: Pick<Dialect, 'audit' | 'forUpdate'>
  readonly signed: RowSigning
  /** Says why the work ends. */
  readonly reason: string
  readonly nowMs: number
}

/** Part of a write of a database that no daemon uses. */
export function* endUnfinished({ end, dialect, signed, reason, nowMs }: About): Steps<StoreRecovered> {
  const endRows = (table: string, state: string, condition: string) => {
    const states = ['state', ...end.alsoState].map((column) => `${column} = '${state}'`)
    const text = `UPDATE ${table} SET ${states}, error = $1, ended_at = $2, next_at = NULL WHERE ${condition} RETURNING number`
    return statement(text, reason, nowMs)
  }
  const runs = yield* cancelRuns(dialect, reason, nowMs)
  const [replies = [], messages = [], approvals = [], turns = []] = yield [
    endRows('outbox', 'ambiguous', end.replies),
    endRows('inbox', 'dead', end.messages),
    statement(CANCEL_APPROVALS, reason, nowMs),
    statement(TURNS, JSON.stringify({ code: 'unavailable', message: reason }), nowMs),
  ]
  yield* all(SETTLE_APPROVALS, nowMs)
  // Instants of cron triggers since that time may have started runs.
  const cron = yield* first(HAS_KEY, CRON.owner, toBytes(CRON.key))
  yield [...(cron ? [CRON] : []), RESTORED].map(({ owner, key }) => putValue(signed, owner, key, nowMs))
  return { replies: replies.length, messages: messages.length, turns: turns.length, approvals: approvals.length, runs }
}

function* cancelRuns({ audit, forUpdate }: About['dialect'], reason: string, nowMs: number): Steps<number> {
  const runs = (yield* all<{ json: string }>(`${RUNS}${forUpdate}`)).map(({ json }): SopRun => JSON.parse(json))
  const records: NewAudit[] = []
  for (const run of runs) {
    // One that had not begun can be replayed.
    const status = run.status === 'waiting' ? 'expired' : 'cancelled'
    const after: SopRun = { ...run, status, gate: null, report: null, endedAtMs: nowMs, reason }
    yield* all(END_RUN, status, JSON.stringify(after), nowMs, run.id)
    if (status === 'cancelled') yield* all(NOTE_END, run.sop, nowMs)
    records.push({ kind: `run_${status}`, atMs: nowMs, sop: run.sop, run: run.id, step: null, by: 'engine', reason, detail: {} })
  }
  yield* appendAudit(audit, records)
  return runs.length
}

/**
 * Prepares data that was recovered to the state of an earlier time, such as by point-in-time recovery. Daemons went on after that time,
 * so work that is unfinished in the data may have been done since: nothing of it is repeated by itself, and operators decide about it.
 */
import { AppError, type NewAudit, type SopRun, type StoreRecovered } from '@sluice/sdk'
import { RESTORED, toBytes } from '@sluice/store/shared'
import type pg from 'pg'
import { appendAudit } from './audit-log.ts'
import { type ConnectionSettings, connect, disconnect, sql } from './connection.ts'
import { TTL_MS } from './leases.ts'
import { requireNoDaemon } from './no-daemon.ts'
import { storeError } from './postgres-error.ts'
import type { Tx } from './writer.ts'

const REPLIES = `
  UPDATE outbox SET state = 'ambiguous', marked = 'ambiguous', error = $1, ended_at = $2, next_at = NULL
  WHERE ended_at IS NULL RETURNING number`
const MESSAGES = `
  UPDATE inbox SET state = 'dead', marked = 'dead', error = $1, ended_at = $2, next_at = NULL WHERE ended_at IS NULL RETURNING number`
const TURNS = `
  UPDATE turns SET status = 'failed', error_json = $1, ended_at = $2, checkpoint_json = NULL WHERE ended_at IS NULL RETURNING id`
const CANCEL_APPROVALS = `
  UPDATE approvals SET state = 'cancelled', decided_by = 'system', feedback = $1, decided_at = $2 WHERE state = 'pending' RETURNING number`
// Nobody is told of a decision that may have been told already.
const SETTLE_APPROVALS = 'UPDATE approvals SET settled_at = $1 WHERE settled_at IS NULL'
const RUNS = 'SELECT run_json AS json FROM sop_runs WHERE ended_at IS NULL ORDER BY number FOR UPDATE'
const END_RUN = 'UPDATE sop_runs SET status = $1, run_json = $2, ended_at = $3 WHERE id = $4'
const NOTE_END = 'INSERT INTO sop_ends (sop, ended_at) VALUES ($1, $2) ON CONFLICT (sop) DO UPDATE SET ended_at = excluded.ended_at'
const SET_KEY = `
  INSERT INTO key_values (owner, key, value_json) VALUES ($1, $2, $3)
  ON CONFLICT (owner, key) DO UPDATE SET value_json = excluded.value_json`
const HAS_KEY = 'SELECT 1 FROM key_values WHERE owner = $1 AND key = $2'
const CRON = { owner: 'sop', key: 'cron' } as const

export interface MarkRecoveredOptions {
  readonly settings: ConnectionSettings
  /** The time whose state the data has. */
  readonly atMs: number
  readonly nowMs: number
}

/** Marks everything in one commit. Rejects with `conflict` while a daemon works with the database. */
export async function markRecovered({ settings, atMs, nowMs }: MarkRecoveredOptions): Promise<StoreRecovered> {
  if (atMs > nowMs) throw new AppError('invalid_request', 'The time until which the data was recovered is in the future.')
  let client: pg.Client | undefined
  try {
    client = await connect(settings, { isPatient: true })
    const tx = txOf(client)
    await requireNoDaemon(tx, 2 * TTL_MS)
    await client.query('BEGIN')
    const marked = await mark(tx, atMs, nowMs)
    await requireNoDaemon(tx)
    await client.query('COMMIT')
    return marked
  } catch (error) {
    throw storeError(error, 'The recovered data cannot be marked')
  } finally {
    await disconnect(client)
  }
}

function txOf(client: pg.Client): Tx {
  const all = async <R>(text: string, ...values: readonly unknown[]): Promise<R[]> => {
    const statement = sql(text, ...values)
    return (await client.query(statement.text, statement.values as unknown[])).rows as R[]
  }
  return { all, get: async <R>(text: string, ...values: readonly unknown[]) => (await all<R>(text, ...values))[0] }
}

async function mark(tx: Tx, atMs: number, nowMs: number): Promise<StoreRecovered> {
  const reason = `The data was recovered to its state of ${new Date(atMs).toISOString()}: this may have been done after that time.`
  const runs = await cancelRuns(tx, reason, nowMs)
  const replies = (await tx.all(REPLIES, reason, nowMs)).length
  const messages = (await tx.all(MESSAGES, reason, nowMs)).length
  const approvals = (await tx.all(CANCEL_APPROVALS, reason, nowMs)).length
  const turns = (await tx.all(TURNS, JSON.stringify({ code: 'unavailable', message: reason }), nowMs)).length
  await tx.all(SETTLE_APPROVALS, nowMs)
  // Instants of cron triggers since that time may have started runs.
  if (await tx.get(HAS_KEY, CRON.owner, toBytes(CRON.key))) await tx.all(SET_KEY, CRON.owner, toBytes(CRON.key), JSON.stringify(nowMs))
  await tx.all(SET_KEY, RESTORED.owner, toBytes(RESTORED.key), JSON.stringify(nowMs))
  return { replies, messages, turns, approvals, runs }
}

async function cancelRuns(tx: Tx, reason: string, nowMs: number): Promise<number> {
  const runs = (await tx.all<{ json: string }>(RUNS)).map(({ json }): SopRun => JSON.parse(json))
  const audit: NewAudit[] = []
  for (const run of runs) {
    const after: SopRun = { ...run, status: 'cancelled', gate: null, report: null, endedAtMs: nowMs, reason }
    await tx.all(END_RUN, after.status, JSON.stringify(after), nowMs, run.id)
    await tx.all(NOTE_END, run.sop, nowMs)
    audit.push({ kind: 'run_cancelled', atMs: nowMs, sop: run.sop, run: run.id, step: null, by: 'engine', reason, detail: {} })
  }
  await appendAudit(tx, audit)
  return runs.length
}

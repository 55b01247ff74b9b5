/**
 * Prepares data that was recovered to the state of an earlier time, such as by point-in-time recovery. Daemons went on after that time,
 * so work that is unfinished in the data may have been done since: nothing of it is repeated by itself, and operators decide about it.
 */
import { AppError, type NewAudit, type SopRun, type StoreRecovered, type StoreToolOptions } from '@sluice/sdk'
import { appendAudit, putValue, RESTORED, toBytes } from '@sluice/store/shared'
import type pg from 'pg'
import { TTL_MS } from '../cluster/membership.ts'
import { type ConnectionSettings, connect, databaseName, disconnect, PUT_META, queryOf } from '../connection/connection.ts'
import type { Tx } from '../connection/group-commit.ts'
import { storeError } from '../connection/postgres-error.ts'
import { runSteps } from '../connection/run-steps.ts'
import { ACCEPTED_KEY } from '../connection/server-history.ts'
import { demandSignatures } from '../schema/demand-signatures.ts'
import { migrate } from '../schema/migrate.ts'
import { RowSignatures } from '../schema/row-signatures.ts'
import { AUDIT } from '../tables/dialect.ts'
import { requireNoDaemon } from './no-daemon.ts'

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
const END_RUN = 'UPDATE sop_runs SET status = $1, run_json = $2, ended_at = $3, held_at = NULL WHERE id = $4'
const NOTE_END = 'INSERT INTO sop_ends (sop, ended_at) VALUES ($1, $2) ON CONFLICT (sop) DO UPDATE SET ended_at = excluded.ended_at'
const HAS_KEY = 'SELECT 1 FROM key_values WHERE owner = $1 AND key = $2'
const CRON = { owner: 'sop', key: 'cron' } as const

export interface MarkRecoveredOptions {
  readonly settings: ConnectionSettings
  /** The time whose state the data has. */
  readonly atMs: number
  readonly nowMs: number
  readonly about: Pick<StoreToolOptions, 'keyIds' | 'log'> & Partial<Pick<StoreToolOptions, 'signer'>>
}

/** Marks everything in one commit. Rejects with `conflict` while a daemon works with the database. */
export async function markRecovered({ settings, atMs, nowMs, about }: MarkRecoveredOptions): Promise<StoreRecovered> {
  if (atMs > nowMs) throw new AppError('invalid_request', 'The time until which the data was recovered is in the future.')
  let client: pg.Client | undefined
  try {
    client = await connect(settings, { isPatient: true })
    const tx = txOf(client)
    await requireNoDaemon(tx, 2 * TTL_MS)
    const { signed } = await migrate({ settings, nowMs, ...about })
    const signatures = new RowSignatures({ ...about, database: databaseName(settings) })
    signatures.learn(signed)
    await client.query('BEGIN')
    const marked = await mark(tx, signatures, { atMs, nowMs })
    // The newest configuration may be older than what nodes have read.
    if (about.signer && signatures.isDemanded)
      await demandSignatures(tx.all, about.signer, nowMs, about.signer.remembered(databaseName(settings)))
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
  const all = queryOf(client)
  return { all, get: async <R>(text: string, ...values: readonly unknown[]) => (await all<R>(text, ...values))[0] }
}

async function mark(
  tx: Tx,
  signatures: RowSignatures,
  { atMs, nowMs }: { readonly atMs: number; readonly nowMs: number },
): Promise<StoreRecovered> {
  const setKey = ({ owner, key }: { readonly owner: string; readonly key: string }) => {
    const { text, values } = putValue(signatures, owner, key, nowMs)
    return tx.all(text, ...values)
  }
  const reason = `The data was recovered to its state of ${new Date(atMs).toISOString()}: this may have been done after that time.`
  const runs = await cancelRuns(tx, reason, nowMs)
  const replies = (await tx.all(REPLIES, reason, nowMs)).length
  const messages = (await tx.all(MESSAGES, reason, nowMs)).length
  const approvals = (await tx.all(CANCEL_APPROVALS, reason, nowMs)).length
  const turns = (await tx.all(TURNS, JSON.stringify({ code: 'unavailable', message: reason }), nowMs)).length
  await tx.all(SETTLE_APPROVALS, nowMs)
  // Instants of cron triggers since that time may have started runs.
  if (await tx.get(HAS_KEY, CRON.owner, toBytes(CRON.key))) await setKey(CRON)
  await setKey(RESTORED)
  // Daemons that have seen a later state may start.
  await tx.all(PUT_META, ACCEPTED_KEY, String(nowMs))
  return { replies, messages, turns, approvals, runs }
}

async function cancelRuns(tx: Tx, reason: string, nowMs: number): Promise<number> {
  const runs = (await tx.all<{ json: string }>(RUNS)).map(({ json }): SopRun => JSON.parse(json))
  const audit: NewAudit[] = []
  for (const run of runs) {
    // One that had not begun can be replayed.
    const status = run.status === 'waiting' ? 'expired' : 'cancelled'
    const after: SopRun = { ...run, status, gate: null, report: null, endedAtMs: nowMs, reason }
    await tx.all(END_RUN, status, JSON.stringify(after), nowMs, run.id)
    if (status === 'cancelled') await tx.all(NOTE_END, run.sop, nowMs)
    audit.push({ kind: `run_${status}`, atMs: nowMs, sop: run.sop, run: run.id, step: null, by: 'engine', reason, detail: {} })
  }
  await runSteps(tx, appendAudit(AUDIT, audit))
  return runs.length
}

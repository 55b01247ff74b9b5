/**
 * Prepares data that was recovered to the state of an earlier time, such as by point-in-time recovery. Daemons went on after that time,
 * so work that is unfinished in the data may have been done since: nothing of it is repeated by itself, and operators decide about it.
 */
import { AppError, type StoreRecovered, type StoreToolOptions } from '@sluice/sdk'
import { type EndDialect, endUnfinished } from '@sluice/store/shared'
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
import { DIALECT } from '../tables/dialect.ts'
import { requireNoDaemon } from './no-daemon.ts'

const END: EndDialect = { replies: 'ended_at IS NULL', messages: 'ended_at IS NULL', alsoState: ['marked'] }

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
    const reason = `The data was recovered to its state of ${new Date(atMs).toISOString()}: this may have been done after that time.`
    const ended = await runSteps(tx, endUnfinished({ end: END, dialect: DIALECT, signed: signatures, reason, nowMs }))
    // Daemons that have seen a later state may start.
    await tx.all(PUT_META, ACCEPTED_KEY, String(nowMs))
    // The newest configuration may be older than what nodes have read.
    if (about.signer && signatures.isDemanded)
      await demandSignatures(tx.all, about.signer, nowMs, about.signer.remembered(databaseName(settings)))
    await requireNoDaemon(tx)
    await client.query('COMMIT')
    return ended
  } catch (error) {
    throw storeError(error, 'The recovered data cannot be marked')
  } finally {
    await disconnect(client)
  }
}

/** Sends each statement after the answer to the one before: the driver is about to refuse a second one at once on a connection without a pipeline. */
function txOf(client: pg.Client): Tx {
  const query = queryOf(client)
  let before: Promise<unknown> = Promise.resolve()
  const all: Tx['all'] = <R>(text: string, ...values: readonly unknown[]) => {
    const answer = before.then(() => query<R>(text, ...values))
    before = answer.catch(() => undefined)
    return answer
  }
  return { all, get: async <R>(text: string, ...values: readonly unknown[]) => (await all<R>(text, ...values))[0] }
}

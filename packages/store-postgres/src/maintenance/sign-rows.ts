/** Signs the rows that an operator has seen, and makes every node demand signed rows. */
import { AppError, type StoreSignOptions } from '@sluice/sdk'
import type pg from 'pg'
import { TTL_MS } from '../cluster/membership.ts'
import { type All, type ConnectionSettings, connect, databaseName, disconnect, metaOf, queryOf } from '../connection/connection.ts'
import { storeError } from '../connection/postgres-error.ts'
import { demandSignatures } from '../schema/demand-signatures.ts'
import { checkKey } from '../schema/migrate.ts'
import { RowSignatures, SIGNED_KEY } from '../schema/row-signatures.ts'
import { MIGRATIONS, SIGNED_SINCE } from '../schema/schema.ts'
import { SIGNED_NAMES } from '../schema/signed-tables.ts'
import { dropRead, pagesOf, signRead, surveyOf, unverifiedRows } from '../schema/unverified-rows.ts'

const OLDER = `
  SELECT DISTINCT node FROM processes WHERE schema_version < $1 AND beat_at > clock_timestamp() - ${TTL_MS} * interval '1 millisecond' ORDER BY node`

/** Resolves to false when nothing was decided. */
export async function signRows(settings: ConnectionSettings, { signer, keyIds, clock, log, decide }: StoreSignOptions): Promise<boolean> {
  let client: pg.Client | undefined
  try {
    client = await connect(settings, { isPatient: true })
    const all = queryOf(client)
    const meta = await metaOf(all)
    if (meta.get('schema_version') !== String(MIGRATIONS.length))
      throw new AppError('unavailable', 'The schema is of another release. Start a daemon of this release once, and try again.')
    checkKey(meta.get('key_id'), keyIds)
    const older = (await all(OLDER, SIGNED_SINCE)).map(({ node }) => node)
    if (older.length > 0)
      throw new AppError(
        'conflict',
        `Nodes of an earlier release run, which sign nothing: ${older.join(', ')}. Upgrade them first, and sign then.`,
      )
    const signatures = new RowSignatures({ signer, database: databaseName(settings), log })
    signatures.learn(meta.get(SIGNED_KEY))
    const unverified = await unverifiedRows(all, signatures)
    const decided = await decide(await surveyOf(all, signatures, unverified))
    if (!decided) return false
    const names = new Set(decided.rows.map(({ name }) => name))
    for (const table of SIGNED_NAMES) {
      const rows = unverified.filter((one) => one.table === table && names.has(one.name)).map(({ row }) => row)
      const done = decided.does === 'sign' ? await signRead(all, table, rows, signatures) : await dropRead(all, table, rows)
      if (done < rows.length) throw new AppError('conflict', `Rows of ${table} have changed since they were shown. Run the command again.`)
    }
    await demandSignatures(all, signer, clock.nowMs(), signer.remembered(databaseName(settings)))
    return true
  } catch (error) {
    throw storeError(error, 'The rows of the database cannot be signed')
  } finally {
    await disconnect(client)
  }
}

/** Signs every row of a copy that has just been compared with its source. */
export async function signAll(all: All, signatures: RowSignatures): Promise<void> {
  for (const table of SIGNED_NAMES) for await (const rows of pagesOf(all, table)) await signRead(all, table, rows, signatures)
}

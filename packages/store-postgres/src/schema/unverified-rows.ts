/** Reads all signed tables and finds the rows without a right HMAC. */
import type { RowSurvey, UnverifiedRow } from '@sluice/sdk'
import type { All, Row } from '../connection/connection.ts'
import type { RowSignatures } from './row-signatures.ts'
import { aboutTable, nameOfRow, newestVersion, SIGNED_NAMES, type SignedName, shownValues } from './signed-tables.ts'

const PAGE_ROWS = 500

export interface FoundRow extends UnverifiedRow {
  readonly table: SignedName
  readonly row: Row
}

/** Yields the rows of a signed table in pages, in the order of their key. */
export async function* pagesOf(all: All, table: SignedName, condition = 'true'): AsyncGenerator<readonly Row[]> {
  const { covered, only = 'true' } = aboutTable(table)
  const key = keyOf(table)
  const columns = [...new Set([...key, ...covered, 'hmac'])].join(', ')
  const order = key.join(', ')
  const next = `(${order}) > (${key.map((_, at) => `$${at + 1}`).join(', ')})`
  const query = (after: string) =>
    `SELECT ${columns} FROM ${table} WHERE ${only} AND ${condition} AND ${after} ORDER BY ${order} LIMIT ${PAGE_ROWS}`
  let rows = await all(query('true'))
  while (rows.length > 0) {
    yield rows
    const last = rows.at(-1) ?? {}
    rows = rows.length < PAGE_ROWS ? [] : await all(query(next), ...key.map((column) => last[column]))
  }
}

export async function unverifiedRows(all: All, signatures: RowSignatures): Promise<FoundRow[]> {
  const found: FoundRow[] = []
  for (const table of SIGNED_NAMES)
    for await (const rows of pagesOf(all, table))
      for (const row of rows) {
        const fault = signatures.faultOf(table, row)
        if (fault === undefined) continue
        const about = { name: nameOfRow(table, row), values: shownValues(table, row), fault: row.hmac === null ? null : fault }
        found.push({ table, row, ...about })
      }
  return found
}

/** What `unverifiedRows` has found, for people. */
export const surveyOf = async (all: All, signatures: RowSignatures, unverified: readonly FoundRow[]): Promise<RowSurvey> => ({
  isDemanded: signatures.isDemanded,
  unverified: unverified.map(({ name, values, fault }) => ({ name, values, fault })),
  configVersion: await newestVersion(all),
  configSeen: signatures.configSeen,
})

const keyOf = (table: SignedName): readonly string[] => Object.keys(aboutTable(table).key)

/** Returns the SQL that finds given rows, unless another process has changed them since they were read, and its parameters. */
function givenRows(table: SignedName, rows: readonly Row[], ...more: readonly (readonly unknown[])[]) {
  const types = { ...aboutTable(table).key, old: 'text', ...(more.length > 0 && { fresh: 'text' }) }
  const key = keyOf(table)
  const parameters = Object.values(types).map((type, at) => `$${at + 1}::${type}[]`)
  const found = [...key.map((column) => `${table}.${column} = given.${column}`), `${table}.hmac IS NOT DISTINCT FROM given.old`].join(
    ' AND ',
  )
  const from = `unnest(${parameters.join(', ')}) AS given (${Object.keys(types).join(', ')})`
  return { from, found, values: [...[...key, 'hmac'].map((column) => rows.map((row) => row[column])), ...more] }
}

/** Signs rows. Resolves to the number of rows that no other process has changed since they were read. */
export async function signRead(all: All, table: SignedName, rows: readonly Row[], signatures: RowSignatures): Promise<number> {
  if (rows.length === 0) return 0
  const { from, found, values } = givenRows(
    table,
    rows,
    rows.map((row) => signatures.of(table, row)),
  )
  return (await all(`UPDATE ${table} SET hmac = given.fresh FROM ${from} WHERE ${found} RETURNING 1`, ...values)).length
}

/** Deletes rows. Resolves to the number of rows that no other process has changed since they were read. */
export async function dropRead(all: All, table: SignedName, rows: readonly Row[]): Promise<number> {
  if (rows.length === 0) return 0
  const { from, found, values } = givenRows(table, rows)
  return (await all(`DELETE FROM ${table} USING ${from} WHERE ${found} RETURNING 1`, ...values)).length
}

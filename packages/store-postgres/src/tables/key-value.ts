/** The durable keys and values of one owner. */
import { isDeepStrictEqual } from 'node:util'
import type { KeyValue } from '@sluice/sdk'
import { endOfPrefix, toBytes, toText } from '@sluice/store/shared'
import { type Row, sql } from '../connection/connection.ts'
import type { Database } from '../connection/database.ts'
import type { RowSignatures } from '../schema/row-signatures.ts'

const GET = 'SELECT owner, key, value_json, hmac FROM key_values WHERE owner = $1 AND key = $2'
export const SET = `
  INSERT INTO key_values (owner, key, value_json, hmac) VALUES ($1, $2, $3, $4)
  ON CONFLICT (owner, key) DO UPDATE SET value_json = excluded.value_json, hmac = excluded.hmac`
const ADD = 'INSERT INTO key_values (owner, key, value_json, hmac) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING RETURNING 1'
// Compares texts: a value that another process wrote meanwhile is read again.
const REPLACE = 'UPDATE key_values SET value_json = $3, hmac = $4 WHERE owner = $1 AND key = $2 AND value_json = $5 RETURNING 1'
const REMOVE = 'DELETE FROM key_values WHERE owner = $1 AND key = $2 AND value_json = $3 RETURNING 1'
// A write that does nothing, so that a lost lease is noticed where nothing has to change.
const TOUCH = 'SELECT 1'
const DELETE = 'DELETE FROM key_values WHERE owner = $1 AND key = $2'
const LIST = `
  SELECT owner, key, value_json, hmac FROM key_values
  WHERE owner = $1 AND key >= $2 AND ($3::bytea IS NULL OR key < $3) ORDER BY key LIMIT $4`

interface ValueRow extends Row {
  readonly key: Buffer
  readonly value_json: string
}

/**
 * Values are copied. A value without a JSON form, such as a function or `undefined`, is stored as null. A row that is refused rejects with
 * `config_invalid`, and is left out of a list.
 */
export function createKeyValue(db: Database, owner: string): KeyValue {
  const read = async (key: Buffer): Promise<ValueRow | undefined> => {
    const row = await db.get<ValueRow>(GET, owner, key)
    if (row) db.signatures.require('key_values', row)
    return row
  }
  const valuesOf = (key: Buffer, value: unknown) => signedValue(db.signatures, { owner, key, value_json: toJson(value) })

  /** The statement returns a row when the stored value was `before`. */
  const swapStatement = (key: Buffer, before: string | undefined, after: unknown) => {
    if (after === undefined) return before === undefined ? sql(TOUCH) : sql(REMOVE, owner, key, before)
    return before === undefined ? sql(ADD, ...valuesOf(key, after)) : sql(REPLACE, ...valuesOf(key, after), before)
  }

  return {
    async get(key) {
      const row = await read(toBytes(key))
      return row && JSON.parse(row.value_json)
    },
    async set(key, value) {
      await db.writer.write(sql(SET, ...valuesOf(toBytes(key), value)))
    },
    async delete(key) {
      await db.writer.write(sql(DELETE, owner, toBytes(key)))
    },
    async swap(key, before, after) {
      const bytes = toBytes(key)
      const expected = asStored(before)
      for (;;) {
        const row = await read(bytes)
        if (!isDeepStrictEqual(row && JSON.parse(row.value_json), expected)) return false
        const changed = await db.writer.write(swapStatement(bytes, row?.value_json, after))
        if (changed.length > 0) return true
      }
    },
    async setAll(changes) {
      const statements = Array.from(changes, ([key, value]) => [toBytes(key), value] as const)
        // In one order, so that two processes cannot wait for each other.
        .toSorted(([a], [b]) => a.compare(b))
        .map(([key, value]) => (value === undefined ? sql(DELETE, owner, key) : sql(SET, ...valuesOf(key, value))))
      if (statements.length > 0) await db.writer.write(...statements)
    },
    async list(prefix, limit) {
      const start = toBytes(prefix)
      const rows = await db.all<ValueRow>(LIST, owner, start, endOfPrefix(start) ?? null, limit)
      return rows
        .filter((row) => db.signatures.accepts('key_values', row))
        .map((row) => ({ key: toText(row.key), value: JSON.parse(row.value_json) }))
    },
  }
}

/** The parameters of a statement that stores a value. */
export const signedValue = (
  signatures: RowSignatures,
  row: { readonly owner: string; readonly key: Uint8Array; readonly value_json: string },
): readonly unknown[] => [row.owner, row.key, row.value_json, signatures.of('key_values', row)]

const toJson = (value: unknown): string => JSON.stringify(value) ?? 'null'

/** Returns what a read of this value would return. */
const asStored = (value: unknown): unknown => (value === undefined ? undefined : JSON.parse(toJson(value)))

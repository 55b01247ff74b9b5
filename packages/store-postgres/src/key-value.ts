/** The durable keys and values of one owner. */
import { isDeepStrictEqual } from 'node:util'
import type { KeyValue } from '@sluice/sdk'
import { endOfPrefix, toBytes, toText } from '@sluice/store/shared'
import { sql } from './connection.ts'
import type { Db } from './db.ts'

const GET = 'SELECT value_json FROM key_values WHERE owner = $1 AND key = $2'
const SET = `
  INSERT INTO key_values (owner, key, value_json) VALUES ($1, $2, $3) ON CONFLICT (owner, key) DO UPDATE SET value_json = excluded.value_json`
const ADD = 'INSERT INTO key_values (owner, key, value_json) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING 1'
// Compares texts: a value that another process wrote meanwhile is read again.
const REPLACE = 'UPDATE key_values SET value_json = $3 WHERE owner = $1 AND key = $2 AND value_json = $4 RETURNING 1'
const REMOVE = 'DELETE FROM key_values WHERE owner = $1 AND key = $2 AND value_json = $3 RETURNING 1'
// A write that does nothing, so that a lost lease is noticed where nothing has to change.
const TOUCH = 'SELECT 1'
const DELETE = 'DELETE FROM key_values WHERE owner = $1 AND key = $2'
const LIST = `
  SELECT key, value_json FROM key_values WHERE owner = $1 AND key >= $2 AND ($3::bytea IS NULL OR key < $3) ORDER BY key LIMIT $4`

interface Row {
  readonly key: Buffer
  readonly value_json: string
}

/** Values are copied. A value without a JSON form, such as a function or `undefined`, is stored as null. */
export const createKeyValue = (db: Db, owner: string): KeyValue => ({
  async get(key) {
    const row = await db.get<Row>(GET, owner, toBytes(key))
    return row && JSON.parse(row.value_json)
  },
  async set(key, value) {
    await db.writer.write(sql(SET, owner, toBytes(key), toJson(value)))
  },
  async delete(key) {
    await db.writer.write(sql(DELETE, owner, toBytes(key)))
  },
  async swap(key, before, after) {
    const bytes = toBytes(key)
    const expected = asStored(before)
    for (;;) {
      const row = await db.get<Row>(GET, owner, bytes)
      if (!isDeepStrictEqual(row && JSON.parse(row.value_json), expected)) return false
      const changed = await db.writer.write(swapStatement(owner, bytes, row?.value_json, after))
      if (changed.length > 0) return true
    }
  },
  async setAll(changes) {
    const statements = Array.from(changes, ([key, value]) => [toBytes(key), value] as const)
      // In one order, so that two processes cannot wait for each other.
      .toSorted(([a], [b]) => a.compare(b))
      .map(([key, value]) => (value === undefined ? sql(DELETE, owner, key) : sql(SET, owner, key, toJson(value))))
    if (statements.length > 0) await db.writer.write(...statements)
  },
  async list(prefix, limit) {
    const start = toBytes(prefix)
    const rows = await db.all<Row>(LIST, owner, start, endOfPrefix(start) ?? null, limit)
    return rows.map((row) => ({ key: toText(row.key), value: JSON.parse(row.value_json) }))
  },
})

/** The statement returns a row when the stored value was `before`. */
function swapStatement(owner: string, key: Buffer, before: string | undefined, after: unknown) {
  if (after === undefined) return before === undefined ? sql(TOUCH) : sql(REMOVE, owner, key, before)
  return before === undefined ? sql(ADD, owner, key, toJson(after)) : sql(REPLACE, owner, key, toJson(after), before)
}

const toJson = (value: unknown): string => JSON.stringify(value) ?? 'null'

/** Returns what a read of this value would return. */
const asStored = (value: unknown): unknown => (value === undefined ? undefined : JSON.parse(toJson(value)))

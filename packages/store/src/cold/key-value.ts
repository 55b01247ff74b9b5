/** The durable keys and values of one owner. */
import { isDeepStrictEqual } from 'node:util'
import type { KeyValue } from '@sluice/sdk'
import { endOfPrefix, toBytes, toText } from '../tables/key-bytes.ts'
import { type ColdDatabase, type Statement, statement } from './cold-database.ts'
import { newRow, type RowSigning } from './row-signing.ts'

interface ValueRow {
  readonly key: Uint8Array
  readonly value_json: string
}

const DELETE = 'DELETE FROM key_values WHERE owner = $1 AND key = $2'
const REMOVE = `${DELETE} AND value_json = $3 RETURNING key`
// A write that does nothing, so that a lost lease is noticed where nothing has to change.
const TOUCH = 'SELECT 1'

const columnsOf = ({ columns }: RowSigning): readonly string[] => ['owner', 'key', 'value_json', ...columns]

/** Returns the statement that stores a value, which may also be a part of another write. */
export function putValue(signed: RowSigning, owner: string, key: string, value: unknown): Statement {
  const changed = ['value_json', ...signed.columns].map((column) => `${column} = excluded.${column}`)
  const text = `INSERT INTO key_values ${newRow(columnsOf(signed))} ON CONFLICT (owner, key) DO UPDATE SET ${changed}`
  return statement(text, ...valuesOf(signed, owner, toBytes(key), value))
}

const valuesOf = (signed: RowSigning, owner: string, key: Uint8Array, value: unknown) => {
  const row = { owner, key, value_json: toJson(value) }
  return [...Object.values(row), ...signed.values('key_values', row)]
}

/**
 * Values are copied. A value without a JSON form, such as a function or `undefined`, is stored as null. A row that is refused rejects with
 * `config_invalid`, and is left out of a list.
 */
export function createKeyValue(db: ColdDatabase, owner: string): KeyValue {
  const { signed } = db
  const columns = columnsOf(signed)
  const ROWS = `SELECT ${columns} FROM key_values WHERE owner = $1 AND key`
  const [GET, FROM, BETWEEN] = [`${ROWS} = $2`, `${ROWS} >= $2 ORDER BY key LIMIT $3`, `${ROWS} >= $2 AND key < $3 ORDER BY key LIMIT $4`]
  const ADD = `INSERT INTO key_values ${newRow(columns)} ON CONFLICT (owner, key) DO NOTHING RETURNING key`
  // Compares texts: a value that another process wrote meanwhile is read again.
  const REPLACE = `
    UPDATE key_values SET ${columns.slice(2).map((column, at) => `${column} = $${at + 3}`)}
    WHERE owner = $1 AND key = $2 AND value_json = $${columns.length + 1} RETURNING key`

  const read = async (key: Uint8Array): Promise<ValueRow | undefined> => {
    const row = await db.get<ValueRow>(GET, owner, key)
    if (row) signed.require('key_values', row)
    return row
  }

  /** The statement returns a row when the stored value was `before`. */
  const swapStatement = (key: Uint8Array, before: string | undefined, after: unknown): Statement => {
    if (after === undefined) return before === undefined ? statement(TOUCH) : statement(REMOVE, owner, key, before)
    const values = valuesOf(signed, owner, key, after)
    return before === undefined ? statement(ADD, ...values) : statement(REPLACE, ...values, before)
  }

  const put = (key: string, value: unknown): Statement => putValue(signed, owner, key, value)
  const remove = (key: string): Statement => statement(DELETE, owner, toBytes(key))

  return {
    async get(key) {
      const row = await read(toBytes(key))
      return row && JSON.parse(row.value_json)
    },
    async set(key, value) {
      await db.write(put(key, value))
    },
    async delete(key) {
      await db.write(remove(key))
    },
    async swap(key, before, after) {
      const [bytes, expected, wanted] = [toBytes(key), asStored(before), asStored(after)]
      for (;;) {
        const row = await read(bytes)
        if (!isDeepStrictEqual(row && JSON.parse(row.value_json), expected)) return false
        if ((await db.write(swapStatement(bytes, row?.value_json, wanted))).length > 0) return true
      }
    },
    async setAll(changes) {
      // In one order, so that two processes cannot wait for each other. Strings sort as their bytes.
      const sorted = [...changes].toSorted(([a], [b]) => (a < b ? -1 : 1))
      const statements = sorted.map(([key, value]) => (value === undefined ? remove(key) : put(key, value)))
      if (statements.length > 0) await db.write(...statements)
    },
    async list(prefix, limit) {
      const start = toBytes(prefix)
      const end = endOfPrefix(start)
      const rows = await (end ? db.all<ValueRow>(BETWEEN, owner, start, end, limit) : db.all<ValueRow>(FROM, owner, start, limit))
      return rows
        .filter((row) => signed.accepts('key_values', row))
        .map((row) => ({ key: toText(row.key), value: JSON.parse(row.value_json) }))
    },
  }
}

const toJson = (value: unknown): string => JSON.stringify(value) ?? 'null'

/** Returns what a read of this value would return. */
const asStored = (value: unknown): unknown => (value === undefined ? undefined : JSON.parse(toJson(value)))

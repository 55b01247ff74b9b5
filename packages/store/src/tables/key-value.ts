/** The durable keys and values of one owner. */
import { isDeepStrictEqual } from 'node:util'
import type { KeyValue } from '@sluice/sdk'
import type { Database } from '../connection/database.ts'
import type { Writer } from '../connection/group-commit.ts'

const GET = 'SELECT value_json FROM key_values WHERE owner = ? AND key = ?'
const SET = 'INSERT INTO key_values (owner, key, value_json) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value_json = excluded.value_json'
const DELETE = 'DELETE FROM key_values WHERE owner = ? AND key = ?'
const LIST_FROM = 'SELECT key, value_json FROM key_values WHERE owner = ? AND key >= ? ORDER BY key LIMIT ?'
const LIST_BETWEEN = 'SELECT key, value_json FROM key_values WHERE owner = ? AND key >= ? AND key < ? ORDER BY key LIMIT ?'

interface Row {
  readonly key: Uint8Array
  readonly value_json: string
}

/** Values are copied. A value without a JSON form, such as a function or `undefined`, is stored as null. */
export const createKeyValue = (db: Database, writer: Writer, owner: string): KeyValue => ({
  async get(key) {
    const row = db.read(() => db.get<Row>(GET, owner, toBytes(key)))
    return row && JSON.parse(row.value_json)
  },
  async set(key, value) {
    const json = toJson(value)
    await writer.write(() => db.run(SET, owner, toBytes(key), json))
  },
  async delete(key) {
    await writer.write(() => db.run(DELETE, owner, toBytes(key)))
  },
  async swap(key, before, after) {
    const bytes = toBytes(key)
    const [expected, json] = [asStored(before), after === undefined ? undefined : toJson(after)]
    return writer.write(() => {
      const row = db.get<Row>(GET, owner, bytes)
      if (!isDeepStrictEqual(row && JSON.parse(row.value_json), expected)) return false
      if (json !== undefined) db.run(SET, owner, bytes, json)
      else if (row) db.run(DELETE, owner, bytes)
      return true
    })
  },
  async setAll(changes) {
    const rows = Array.from(changes, ([key, value]) => [toBytes(key), value === undefined ? undefined : toJson(value)] as const)
    if (rows.length === 0) return
    await writer.write(() => {
      for (const [key, json] of rows) {
        if (json === undefined) db.run(DELETE, owner, key)
        else db.run(SET, owner, key, json)
      }
    })
  },
  async list(prefix, limit) {
    const start = toBytes(prefix)
    const end = endOfPrefix(start)
    const rows = db.read(() => (end ? db.all<Row>(LIST_BETWEEN, owner, start, end, limit) : db.all<Row>(LIST_FROM, owner, start, limit)))
    return rows.map((row) => ({ key: toText(row.key), value: JSON.parse(row.value_json) }))
  },
})

const toJson = (value: unknown): string => JSON.stringify(value) ?? 'null'

/** Returns what a read of this value would return. */
const asStored = (value: unknown): unknown => (value === undefined ? undefined : JSON.parse(toJson(value)))

/** UTF-16 with the high byte first sorts like JavaScript strings and preserves invalid Unicode. */
export const toBytes = (text: string): Buffer => Buffer.from(text, 'utf16le').swap16()

export const toText = (bytes: Uint8Array): string => Buffer.from(bytes).swap16().toString('utf16le')

/** Returns the least bytes above all keys that start with `prefix`; undefined when there are none. */
export function endOfPrefix(prefix: Buffer): Buffer | undefined {
  const last = prefix.findLastIndex((byte) => byte < 0xff)
  if (last < 0) return undefined
  const end = Buffer.from(prefix.subarray(0, last + 1))
  end.writeUInt8(end.readUInt8(last) + 1, last)
  return end
}

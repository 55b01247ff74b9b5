/** Keys that are valid once, on every node of a cluster. */
import { type OneTimeKeys, type OneTimeKeysOf, sha256Hex } from '@sluice/sdk'
import type { Row } from '../connection/connection.ts'
import type { Database } from '../connection/database.ts'
import { givenTime, sharedTime } from '../connection/shared-time.ts'

const NOW = `SELECT ${sharedTime('$1')} AS "nowMs"`
const ADD = `
  WITH spent AS (
    DELETE FROM one_time_keys WHERE expires_at <= $6
      OR number IN (SELECT number FROM one_time_keys WHERE purpose = $1 AND owner = $2 ORDER BY number DESC OFFSET $7)
      OR number IN (SELECT number FROM one_time_keys WHERE purpose = $1 ORDER BY number DESC OFFSET $8))
  INSERT INTO one_time_keys (purpose, owner, hash, value_json, expires_at, hmac) VALUES ($1, $2, $3, $4, $5, $9)
  ON CONFLICT (purpose, owner, hash) DO UPDATE SET value_json = excluded.value_json, expires_at = excluded.expires_at, hmac = excluded.hmac`
const TAKE = `
  DELETE FROM one_time_keys WHERE purpose = $1 AND owner = $2 AND hash = $3
  RETURNING purpose, owner, hash, value_json, expires_at, hmac, expires_at > ${sharedTime('$4')} AS "isValid"`

interface TakenRow extends Row {
  readonly value_json: string
  readonly isValid: boolean
}

export const sharedOneTimeKeys =
  (db: Database): OneTimeKeysOf =>
  <Value>(purpose: string, { ttlMs, perOwnerMax, allMax }: Parameters<OneTimeKeysOf>[1]): OneTimeKeys<Value> => ({
    async add(owner, key, value) {
      const bounds = [perOwnerMax - 1, allMax - 1]
      const nowMs = (await db.get<{ nowMs: number }>(NOW, givenTime(db.clock)))?.nowMs ?? 0
      const row = { purpose, owner, hash: sha256Hex(key), value_json: JSON.stringify(value), expires_at: nowMs + ttlMs }
      await db.all(ADD, ...Object.values(row), nowMs, ...bounds, db.signatures.of('one_time_keys', row))
    },
    async take(owner, key) {
      const row = await db.get<TakenRow>(TAKE, purpose, owner, sha256Hex(key), givenTime(db.clock))
      return row?.isValid && db.signatures.accepts('one_time_keys', row) ? (JSON.parse(row.value_json) as Value) : undefined
    },
  })

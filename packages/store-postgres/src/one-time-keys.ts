/** Keys that are valid once, on every node of a cluster. */
import { type OneTimeKeys, type OneTimeKeysOf, sha256Hex } from '@sluice/sdk'
import type { Db } from './db.ts'
import { givenTime, sharedTime } from './shared-time.ts'

const ADD = `
  WITH spent AS (
    DELETE FROM one_time_keys WHERE expires_at <= ${sharedTime('$6')}
      OR number IN (SELECT number FROM one_time_keys WHERE purpose = $1 AND owner = $2 ORDER BY number DESC OFFSET $7)
      OR number IN (SELECT number FROM one_time_keys WHERE purpose = $1 ORDER BY number DESC OFFSET $8))
  INSERT INTO one_time_keys (purpose, owner, hash, value_json, expires_at) VALUES ($1, $2, $3, $4, ${sharedTime('$6')} + $5)
  ON CONFLICT (purpose, owner, hash) DO UPDATE SET value_json = excluded.value_json, expires_at = excluded.expires_at`
const TAKE = `
  DELETE FROM one_time_keys WHERE purpose = $1 AND owner = $2 AND hash = $3
  RETURNING CASE WHEN expires_at > ${sharedTime('$4')} THEN value_json END AS "valueJson"`

export const sharedOneTimeKeys =
  (db: Db): OneTimeKeysOf =>
  <Value>(purpose: string, { ttlMs, perOwnerMax, allMax }: Parameters<OneTimeKeysOf>[1]): OneTimeKeys<Value> => ({
    async add(owner, key, value) {
      const bounds = [perOwnerMax - 1, allMax - 1]
      await db.all(ADD, purpose, owner, sha256Hex(key), JSON.stringify(value), ttlMs, givenTime(db.clock), ...bounds)
    },
    async take(owner, key) {
      const row = await db.get<{ valueJson: string | null }>(TAKE, purpose, owner, sha256Hex(key), givenTime(db.clock))
      return row?.valueJson ? (JSON.parse(row.valueJson) as Value) : undefined
    },
  })

/** Paired devices and one-time pairing codes, both stored only as the SHA-256 of their secret. */
import { endsWithin, systemClock } from '@sluice/kit'
import { AppError, type DeviceRow, type DeviceStore, type NewDevice, type Role } from '@sluice/sdk'
import { sql } from './connection.ts'
import type { Db } from './db.ts'
import { awayError } from './postgres-error.ts'

const COLUMNS =
  'id, name, role, created_at AS "createdAtMs", last_seen_at AS "lastSeenAtMs", last_address AS "lastAddress", expires_at AS "expiresAtMs", issued_by AS "issuedBy"'
// Each sign-in with a passkey adds a device, so that expired ones are dropped here.
const DROP_EXPIRED = 'DELETE FROM devices WHERE expires_at <= $1'
const ADD = `
  INSERT INTO devices (id, name, role, token_hash, created_at, expires_at, issued_by) VALUES ($1, $2, $3, $4, $5, $6, $7)
  ON CONFLICT DO NOTHING RETURNING id`
const FIND = `SELECT ${COLUMNS} FROM devices WHERE token_hash = $1 AND (expires_at IS NULL OR expires_at > $2)`
const LIST = `SELECT ${COLUMNS} FROM devices ORDER BY created_at, number`
const REVOKE_ONLY = 'DELETE FROM devices WHERE id = $1 RETURNING id'
const REVOKE = `
  WITH revoked AS (DELETE FROM devices WHERE id = $1 RETURNING id),
    issued AS (DELETE FROM devices WHERE issued_by IN (SELECT id FROM revoked) AND id NOT IN (SELECT id FROM revoked)),
    noted AS (INSERT INTO revoked_devices (id, revoked_at) SELECT id, $2 FROM revoked ON CONFLICT DO NOTHING)
  SELECT id FROM revoked`
const REVOKED_AMONG = 'SELECT id FROM revoked_devices WHERE id = ANY ($1::text[])'
const ROTATE = `
  UPDATE devices SET token_hash = $2, expires_at = coalesce($3, expires_at) WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM devices AS other WHERE other.token_hash = $2 AND other.id <> $1)
  RETURNING id`
const TOUCH = `
  UPDATE devices SET last_seen_at = seen.at, last_address = seen.address
  FROM (SELECT DISTINCT ON (id) id, at, address FROM unnest($1::text[], $2::float8[], $3::text[]) WITH ORDINALITY AS given (id, at, address, place)
    ORDER BY id, place DESC) AS seen WHERE devices.id = seen.id`

const LOCK_CODES = 'SELECT pg_advisory_xact_lock(7353, 0)'
const DROP_CODES_BEFORE = 'DELETE FROM pairing_codes WHERE expires_at <= $1 OR hash = $2'
const ADD_CODE = 'INSERT INTO pairing_codes (hash, role, expires_at) VALUES ($1, $2, $3)'
const DROP_OLDEST_CODES = 'DELETE FROM pairing_codes WHERE number IN (SELECT number FROM pairing_codes ORDER BY number DESC OFFSET $1)'
const ROLE_OF_CODE = 'SELECT role FROM pairing_codes WHERE hash = $1 AND expires_at > $2 FOR UPDATE'
const DROP_CODE = 'DELETE FROM pairing_codes WHERE hash = $1'
const DROP_CODES = 'DELETE FROM pairing_codes RETURNING number'
const VERSION = 'SELECT version FROM revocations'
/** How long a request waits to learn whether its token is good. */
const FIND_MS = 1_000

const addValues = ({ id, name, role, tokenHash, createdAtMs, expiresAtMs, issuedBy = null }: NewDevice): unknown[] => [
  id,
  name,
  role,
  tokenHash,
  createdAtMs,
  expiresAtMs,
  issuedBy,
]

/** Rejects with `unavailable` when the database does not answer in time: a token that cannot be checked is not good. */
async function within<Result>(ms: number, answer: Promise<Result>): Promise<Result> {
  if (await endsWithin(answer, ms, systemClock)) return answer
  throw awayError('The store does not answer now.')
}

export function createDevices(db: Db): DeviceStore {
  const { writer, clock } = db
  return {
    async add(device) {
      const added = await writer.write(sql(DROP_EXPIRED, clock.nowMs()), sql(ADD, ...addValues(device)))
      if (added.length === 0) throw new AppError('conflict', 'A device with this id or token already exists.')
    },
    findByTokenHash: (tokenHash) => within(FIND_MS, db.get<DeviceRow>(FIND, tokenHash, clock.nowMs())),
    list: () => db.all<DeviceRow>(LIST),
    async revoke(id, { keepPasskeys = false } = {}) {
      const revoked = await writer.write(keepPasskeys ? sql(REVOKE_ONLY, id) : sql(REVOKE, id, clock.nowMs()))
      return revoked.length > 0
    },
    revokedAmong: async (ids) => (await db.all<{ id: string }>(REVOKED_AMONG, ids)).map(({ id }) => id),
    rotate: async (id, tokenHash, expiresAtMs) => (await writer.write(sql(ROTATE, id, tokenHash, expiresAtMs ?? null))).length > 0,
    async touch(seen) {
      const columns = [seen.map(({ id }) => id), seen.map(({ atMs }) => atMs), seen.map(({ address }) => address)]
      await writer.write(sql(TOUCH, ...columns))
    },
    version: async () => (await db.get<{ version: number }>(VERSION))?.version ?? 0,
    async addCode({ hash, role, expiresAtMs }, pendingMax) {
      await writer.write(
        sql(LOCK_CODES),
        sql(DROP_CODES_BEFORE, clock.nowMs(), hash),
        sql(ADD_CODE, hash, role, expiresAtMs),
        sql(DROP_OLDEST_CODES, pendingMax),
      )
    },
    redeemCode: (codeHash, device) =>
      writer.transaction(async (tx): Promise<Role | undefined> => {
        const nowMs = clock.nowMs()
        const code = await tx.get<{ role: Role }>(ROLE_OF_CODE, codeHash, nowMs)
        if (!code) return undefined
        await tx.all(DROP_EXPIRED, nowMs)
        if (!(await tx.get(ADD, ...addValues({ ...device, role: code.role })))) return undefined
        await tx.all(DROP_CODE, codeHash)
        return code.role
      }),
    dropCodes: async () => (await writer.write(sql(DROP_CODES))).length,
  }
}

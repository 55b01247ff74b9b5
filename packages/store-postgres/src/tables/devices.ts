/** Paired devices and one-time pairing codes, both stored only as the SHA-256 of their secret. */
import { endsWithin, systemClock } from '@sluice/kit'
import { AppError, type DeviceRow, type DeviceStore, type NewDevice, type Role } from '@sluice/sdk'
import { type Row, sql } from '../connection/connection.ts'
import type { Database } from '../connection/database.ts'
import { awayError } from '../connection/postgres-error.ts'

const COLUMNS = 'id, name, role, token_hash, created_at, last_seen_at, last_address, expires_at, issued_by, hmac'
// Each sign-in with a passkey adds a device, so that expired ones are dropped here.
const DROP_EXPIRED = 'DELETE FROM devices WHERE expires_at <= $1'
const ADD = `
  INSERT INTO devices (id, name, role, token_hash, created_at, expires_at, issued_by, hmac) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
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
const TO_ROTATE = `SELECT ${COLUMNS} FROM devices WHERE id = $1 FOR UPDATE`
const ROTATE = `
  UPDATE devices SET token_hash = $2, expires_at = $3, hmac = $4
  WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM devices AS other WHERE other.token_hash = $2 AND other.id <> $1) RETURNING id`
const TOUCH = `
  UPDATE devices SET last_seen_at = seen.at, last_address = seen.address
  FROM (SELECT DISTINCT ON (id) id, at, address FROM unnest($1::text[], $2::float8[], $3::text[]) WITH ORDINALITY AS given (id, at, address, place)
    ORDER BY id, place DESC) AS seen WHERE devices.id = seen.id`

const LOCK_CODES = 'SELECT pg_advisory_xact_lock(7353, 0)'
const DROP_CODES_BEFORE = 'DELETE FROM pairing_codes WHERE expires_at <= $1 OR hash = $2'
const ADD_CODE = 'INSERT INTO pairing_codes (hash, role, expires_at, hmac) VALUES ($1, $2, $3, $4)'
const DROP_OLDEST_CODES = 'DELETE FROM pairing_codes WHERE number IN (SELECT number FROM pairing_codes ORDER BY number DESC OFFSET $1)'
const CODE = 'SELECT hash, role, expires_at, hmac FROM pairing_codes WHERE hash = $1 AND expires_at > $2 FOR UPDATE'
const DROP_CODE = 'DELETE FROM pairing_codes WHERE hash = $1'
const DROP_CODES = 'DELETE FROM pairing_codes RETURNING number'
const VERSION = 'SELECT version FROM revocations'
/** How long a request waits to learn whether its token is good. */
const FIND_MS = 1_000

interface DeviceColumns extends Row {
  readonly id: string
  readonly name: string
  readonly role: Role
  readonly token_hash: string
  readonly created_at: number
  readonly last_seen_at: number | null
  readonly last_address: string | null
  readonly expires_at: number | null
  readonly issued_by: string | null
}

const deviceRow = (row: DeviceColumns): DeviceRow => ({
  id: row.id,
  name: row.name,
  role: row.role,
  createdAtMs: row.created_at,
  lastSeenAtMs: row.last_seen_at,
  lastAddress: row.last_address,
  expiresAtMs: row.expires_at,
  issuedBy: row.issued_by,
})

/** Rejects with `unavailable` when the database does not answer in time: a token that cannot be checked is not good. */
async function within<Result>(ms: number, answer: Promise<Result>): Promise<Result> {
  if (await endsWithin(answer, ms, systemClock)) return answer
  throw awayError('The store does not answer now.')
}

export function createDevices(db: Database): DeviceStore {
  const { writer, clock, signatures } = db
  const accepted = (row: DeviceColumns): boolean => signatures.accepts('devices', row)
  const addValues = ({ id, name, role, tokenHash, createdAtMs, expiresAtMs, issuedBy = null }: NewDevice): readonly unknown[] => {
    const row = { id, name, role, token_hash: tokenHash, created_at: createdAtMs, expires_at: expiresAtMs, issued_by: issuedBy }
    return [...Object.values(row), signatures.of('devices', row)]
  }
  return {
    async add(device) {
      const added = await writer.write(sql(DROP_EXPIRED, clock.nowMs()), sql(ADD, ...addValues(device)))
      if (added.length === 0) throw new AppError('conflict', 'A device with this id or token already exists.')
    },
    async findByTokenHash(tokenHash) {
      const row = await within(FIND_MS, db.get<DeviceColumns>(FIND, tokenHash, clock.nowMs()))
      return row && accepted(row) ? deviceRow(row) : undefined
    },
    list: async () => (await db.all<DeviceColumns>(LIST)).filter(accepted).map(deviceRow),
    async revoke(id, { keepPasskeys = false } = {}) {
      const revoked = await writer.write(keepPasskeys ? sql(REVOKE_ONLY, id) : sql(REVOKE, id, clock.nowMs()))
      return revoked.length > 0
    },
    revokedAmong: async (ids) => (await db.all<{ id: string }>(REVOKED_AMONG, ids)).map(({ id }) => id),
    rotate: (id, tokenHash, expiresAtMs) =>
      writer.transaction(async (tx) => {
        const found = await tx.get<DeviceColumns>(TO_ROTATE, id)
        if (!found || !accepted(found)) return false
        const row = { ...found, token_hash: tokenHash, expires_at: expiresAtMs ?? found.expires_at }
        return (await tx.all(ROTATE, id, row.token_hash, row.expires_at, signatures.of('devices', row))).length > 0
      }),
    async touch(seen) {
      const columns = [seen.map(({ id }) => id), seen.map(({ atMs }) => atMs), seen.map(({ address }) => address)]
      await writer.write(sql(TOUCH, ...columns))
    },
    version: async () => (await db.get<{ version: number }>(VERSION))?.version ?? 0,
    async addCode({ hash, role, expiresAtMs }, pendingMax) {
      await writer.write(
        sql(LOCK_CODES),
        sql(DROP_CODES_BEFORE, clock.nowMs(), hash),
        sql(ADD_CODE, hash, role, expiresAtMs, signatures.of('pairing_codes', { hash, role, expires_at: expiresAtMs })),
        sql(DROP_OLDEST_CODES, pendingMax),
      )
    },
    redeemCode: (codeHash, device) =>
      writer.transaction(async (tx): Promise<Role | undefined> => {
        const nowMs = clock.nowMs()
        const code = await tx.get<Row & { role: Role }>(CODE, codeHash, nowMs)
        if (!code || !signatures.accepts('pairing_codes', code)) return undefined
        await tx.all(DROP_EXPIRED, nowMs)
        if (!(await tx.get(ADD, ...addValues({ ...device, role: code.role })))) return undefined
        await tx.all(DROP_CODE, codeHash)
        return code.role
      }),
    dropCodes: async () => (await writer.write(sql(DROP_CODES))).length,
  }
}

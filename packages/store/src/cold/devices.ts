/** Paired devices and one-time pairing codes, both stored only as the SHA-256 of their secret. */
import { AppError, type Clock, type DeviceRow, type DeviceStore, type NewDevice, type Role } from '@sluice/sdk'
import { all, type ColdDatabase, first, type Steps, statement } from './cold-database.ts'
import { newRow, type RowSigning } from './row-signing.ts'

/** The columns that do not change while a device is used. */
const PAIRED = ['id', 'name', 'role', 'token_hash', 'created_at', 'expires_at', 'issued_by']
const DROP_EXPIRED = 'DELETE FROM devices WHERE expires_at <= $1'
const REVOKE = 'DELETE FROM devices WHERE id = $1 RETURNING id'
const REVOKE_ISSUED = 'DELETE FROM devices WHERE issued_by = $1'
const NOTE_REVOKED = 'INSERT INTO revoked_devices (id, revoked_at) VALUES ($1, $2) ON CONFLICT DO NOTHING'
const TOUCH = 'UPDATE devices SET last_seen_at = $2, last_address = $3 WHERE id = $1'
const DROP_CODES_BEFORE = 'DELETE FROM pairing_codes WHERE expires_at <= $1 OR hash = $2'
const DROP_CODE = 'DELETE FROM pairing_codes WHERE hash = $1'
const DROP_CODES = 'DELETE FROM pairing_codes RETURNING hash'
const CODE = ['hash', 'role', 'expires_at']

export interface DeviceColumns {
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

const devicesIn = ({ columns }: RowSigning): string => `SELECT ${[...PAIRED, 'last_seen_at', 'last_address', ...columns]} FROM devices`

/** Selects the device whose token has the hash of parameter 1. */
export const deviceByToken = (signed: RowSigning): string => `${devicesIn(signed)} WHERE token_hash = $1`

/** Both reads differ between the databases: each request waits for the first, and open streams ask for the second. */
export type DeviceReads = 'findByTokenHash' | 'version'

export function createDevices(db: ColdDatabase, clock: Clock): Omit<DeviceStore, DeviceReads> {
  const { signed, dialect } = db
  const { number, forUpdate } = dialect
  const DEVICES = devicesIn(signed)
  const LIST = `${DEVICES} ORDER BY created_at, ${number}`
  const ADD = `INSERT INTO devices ${newRow([...PAIRED, ...signed.columns])} ON CONFLICT DO NOTHING RETURNING id`
  const FIND = `${DEVICES} WHERE id = $1`
  const TO_ROTATE = `${FIND}${forUpdate}`
  const ROTATED = ['token_hash', 'expires_at', ...signed.columns].map((column, at) => `${column} = $${at + 2}`)
  const ROTATE = `
    UPDATE devices SET ${ROTATED}
    WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM devices AS other WHERE other.token_hash = $2 AND other.id <> $1) RETURNING id`
  const REVOKED_AMONG = `SELECT id FROM revoked_devices WHERE ${dialect.among('id', '$1', 'text')}`
  const ADD_CODE = `INSERT INTO pairing_codes ${newRow([...CODE, ...signed.columns])}`
  const DROP_OLDEST_CODES = `
    DELETE FROM pairing_codes WHERE ${number} NOT IN (SELECT ${number} FROM pairing_codes ORDER BY ${number} DESC LIMIT $1)`
  const VALID_CODE = `SELECT ${[...CODE, ...signed.columns]} FROM pairing_codes WHERE hash = $1 AND expires_at > $2${forUpdate}`

  /** Also drops expired devices, because each sign-in with a passkey adds one. The last statement returns no row for a known id or token. */
  const additions = ({ id, name, role, tokenHash, createdAtMs, expiresAtMs, issuedBy = null }: NewDevice) => {
    const row = { id, name, role, token_hash: tokenHash, created_at: createdAtMs, expires_at: expiresAtMs, issued_by: issuedBy }
    return [statement(DROP_EXPIRED, clock.nowMs()), statement(ADD, ...Object.values(row), ...signed.values('devices', row))]
  }

  return {
    async add(device) {
      if ((await db.write(...additions(device))).length === 0)
        throw new AppError('conflict', 'A device with this id or token already exists.')
    },
    async find(id) {
      const [row] = await db.all<DeviceColumns>(FIND, id)
      return row && signed.accepts('devices', row) ? toDevice(row) : undefined
    },
    async list() {
      const rows = await db.all<DeviceColumns>(LIST)
      return rows.filter((row) => signed.accepts('devices', row)).map(toDevice)
    },
    revoke: (id, { keepPasskeys = false } = {}) =>
      db.transaction(function* () {
        if (!(yield* first(REVOKE, id))) return false
        if (!keepPasskeys) yield [statement(REVOKE_ISSUED, id), statement(NOTE_REVOKED, id, clock.nowMs())]
        return true
      }),
    revokedAmong: async (ids) => (await db.all<{ id: string }>(REVOKED_AMONG, ids)).map(({ id }) => id),
    rotate: (id, tokenHash, expiresAtMs) =>
      db.transaction(function* () {
        const found = yield* first<DeviceColumns>(TO_ROTATE, id)
        if (!found || !signed.accepts('devices', found)) return false
        const row = { ...found, token_hash: tokenHash, expires_at: expiresAtMs ?? found.expires_at }
        const rotated = yield* first(ROTATE, id, row.token_hash, row.expires_at, ...signed.values('devices', row))
        return rotated !== undefined
      }),
    async touch(seen) {
      // In one order, so that two processes cannot wait for each other.
      const sorted = seen.toSorted((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0))
      if (seen.length > 0) await db.write(...sorted.map(({ id, atMs, address }) => statement(TOUCH, id, atMs, address)))
    },
    async addCode({ hash, role, expiresAtMs }, pendingMax) {
      const row = { hash, role, expires_at: expiresAtMs }
      await db.write(
        ...dialect.lockCodes,
        statement(DROP_CODES_BEFORE, clock.nowMs(), hash),
        statement(ADD_CODE, ...Object.values(row), ...signed.values('pairing_codes', row)),
        statement(DROP_OLDEST_CODES, pendingMax),
      )
    },
    redeemCode: (codeHash, device) =>
      db.transaction(function* (): Steps<Role | undefined> {
        const code = yield* first<{ role: Role }>(VALID_CODE, codeHash, clock.nowMs())
        if (!code || !signed.accepts('pairing_codes', code)) return undefined
        const added = yield additions({ ...device, role: code.role })
        if (added.at(-1)?.length === 0) return undefined
        yield* all(DROP_CODE, codeHash)
        return code.role
      }),
    dropCodes: async () => (await db.write(statement(DROP_CODES))).length,
  }
}

export const toDevice = (row: DeviceColumns): DeviceRow => ({
  id: row.id,
  name: row.name,
  role: row.role,
  createdAtMs: row.created_at,
  lastSeenAtMs: row.last_seen_at,
  lastAddress: row.last_address,
  expiresAtMs: row.expires_at,
  issuedBy: row.issued_by,
})

export const isValid = ({ expiresAtMs }: DeviceRow, nowMs: number): boolean => expiresAtMs === null || expiresAtMs > nowMs

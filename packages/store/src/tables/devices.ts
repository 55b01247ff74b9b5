/** Paired devices and one-time pairing codes, both stored only as the SHA-256 of their secret. */

import { BoundedMap } from '@sluice/kit'
import { AppError, type Clock, type DeviceRow, type DeviceStore, type NewDevice, type Role } from '@sluice/sdk'
import type { Database } from '../connection/database.ts'
import type { GroupCommit } from '../connection/group-commit.ts'

/** The number of devices whose next request needs no query. */
const CACHED_MAX = 1000

const COLUMNS =
  'id, name, role, created_at AS createdAtMs, last_seen_at AS lastSeenAtMs, last_address AS lastAddress, expires_at AS expiresAtMs, issued_by AS issuedBy'
const ADD =
  'INSERT INTO devices (id, name, role, token_hash, created_at, expires_at, issued_by) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING'
const DROP_EXPIRED = 'DELETE FROM devices WHERE expires_at <= ?'
const FIND = `SELECT ${COLUMNS} FROM devices WHERE token_hash = ?`
const LIST = `SELECT ${COLUMNS} FROM devices ORDER BY created_at, rowid`
const REVOKE = 'DELETE FROM devices WHERE id = ?'
const REVOKE_ISSUED = 'DELETE FROM devices WHERE issued_by = ?'
const NOTE_REVOKED = 'INSERT INTO revoked_devices (id, revoked_at) VALUES (?, ?) ON CONFLICT DO NOTHING'
const REVOKED_AMONG = 'SELECT id FROM revoked_devices WHERE id IN (SELECT value FROM json_each(?))'
const ROTATE = 'UPDATE OR IGNORE devices SET token_hash = ?, expires_at = coalesce(?, expires_at) WHERE id = ?'
const TOUCH = 'UPDATE devices SET last_seen_at = ?, last_address = ? WHERE id = ?'

const DROP_EXPIRED_CODES = 'DELETE FROM pairing_codes WHERE expires_at <= ?'
const DROP_CODE = 'DELETE FROM pairing_codes WHERE hash = ?'
const DROP_CODES = 'DELETE FROM pairing_codes'
const ADD_CODE = 'INSERT INTO pairing_codes (hash, role, expires_at) VALUES (?, ?, ?)'
const DROP_OLDEST_CODES = 'DELETE FROM pairing_codes WHERE rowid IN (SELECT rowid FROM pairing_codes ORDER BY rowid DESC LIMIT -1 OFFSET ?)'
const ROLE_OF_CODE = 'SELECT role FROM pairing_codes WHERE hash = ? AND expires_at > ?'

export function createDevices(db: Database, writer: GroupCommit, clock: Clock): DeviceStore {
  const cache = new DeviceCache(db)

  /** Writes, and clears the cache once the write is durable. */
  const change = async <T>(unit: () => T): Promise<T> => {
    const result = await writer.write(unit)
    cache.clear()
    return result
  }

  return {
    async add(device) {
      if (!(await change(() => insert(db, device, clock.nowMs())))) {
        throw new AppError('conflict', 'A device with this id or token already exists.')
      }
    },
    findByTokenHash(tokenHash) {
      const device = db.read(() => cache.find(tokenHash))
      return device && (device.expiresAtMs === null || device.expiresAtMs > clock.nowMs()) ? device : undefined
    },
    async list() {
      return db.read(() => db.all<DeviceRow>(LIST)).map((row) => ({ ...row }))
    },
    revoke: (id, { keepPasskeys = false } = {}) =>
      change(() => {
        if (db.run(REVOKE, id) === 0) return false
        if (keepPasskeys) return true
        db.run(REVOKE_ISSUED, id)
        db.run(NOTE_REVOKED, id, clock.nowMs())
        return true
      }),
    async revokedAmong(ids) {
      return db.read(() => db.all<{ id: string }>(REVOKED_AMONG, JSON.stringify(ids))).map(({ id }) => id)
    },
    rotate: (id, tokenHash, expiresAtMs) => change(() => db.run(ROTATE, tokenHash, expiresAtMs ?? null, id) > 0),
    touch: (seen) =>
      change(() => {
        for (const { id, atMs, address } of seen) db.run(TOUCH, atMs, address, id)
      }),
    version: () => db.read(() => db.foreignVersion()) + writer.commits,
    addCode: ({ hash, role, expiresAtMs }, pendingMax) =>
      change(() => {
        db.run(DROP_EXPIRED_CODES, clock.nowMs())
        db.run(DROP_CODE, hash)
        db.run(ADD_CODE, hash, role, expiresAtMs)
        db.run(DROP_OLDEST_CODES, pendingMax)
      }),
    redeemCode: (codeHash, device) =>
      change(() => {
        const code = db.get<{ readonly role: Role }>(ROLE_OF_CODE, codeHash, clock.nowMs())
        if (!code || !insert(db, { ...device, role: code.role }, clock.nowMs())) return undefined
        db.run(DROP_CODE, codeHash)
        return code.role
      }),
    dropCodes: () => change(() => db.run(DROP_CODES)),
  }
}

/** Part of a write. Also drops expired devices, because each sign-in with a passkey adds one. Returns false for a known id or token. */
function insert(db: Database, device: NewDevice, nowMs: number): boolean {
  const { id, name, role, tokenHash, createdAtMs, expiresAtMs, issuedBy = null } = device
  db.run(DROP_EXPIRED, nowMs)
  return db.run(ADD, id, name, role, tokenHash, createdAtMs, expiresAtMs, issuedBy) > 0
}

/** Devices by token hash. Cleared after each change of this or another process. */
class DeviceCache {
  readonly #db: Database
  readonly #devices = new BoundedMap<string, DeviceRow>(CACHED_MAX)
  #foreignVersion = -1

  constructor(db: Database) {
    this.#db = db
  }

  clear(): void {
    this.#devices.clear()
  }

  find(tokenHash: string): DeviceRow | undefined {
    const version = this.#db.foreignVersion()
    if (version !== this.#foreignVersion) this.clear()
    this.#foreignVersion = version
    const known = this.#devices.get(tokenHash)
    if (known) return known
    const row = this.#db.get<DeviceRow>(FIND, tokenHash)
    if (!row) return undefined
    const device = { ...row }
    this.#devices.set(tokenHash, device)
    return device
  }
}

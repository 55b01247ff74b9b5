/** Paired devices, known by the SHA-256 of their tokens. */

import { BoundedMap } from '@sluice/kit'
import { AppError, type Clock, type DeviceRow, type DeviceStore, type NewDevice } from '@sluice/sdk'
import type { Database } from './database.ts'
import type { GroupCommit } from './group-commit.ts'
import { createPairingCodes } from './pairing-codes.ts'

/** Devices whose next request needs no query. */
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
const ROTATE = 'UPDATE OR IGNORE devices SET token_hash = ? WHERE id = ?'
const TOUCH = 'UPDATE devices SET last_seen_at = ?, last_address = ? WHERE id = ?'

export function createDevices(db: Database, writer: GroupCommit, clock: Clock): DeviceStore {
  const cached = new BoundedMap<string, DeviceRow>(CACHED_MAX)
  let cachedAtVersion = -1

  /** Writes, and forgets what is cached once that is durable. */
  const change = async <T>(unit: () => T): Promise<T> => {
    const result = await writer.write(unit)
    cached.clear()
    return result
  }

  /** Also drops those that have expired: each sign-in with a passkey leaves one. */
  const insert = (device: NewDevice): boolean => {
    db.run(DROP_EXPIRED, clock.nowMs())
    return (
      db.run(ADD, device.id, device.name, device.role, device.tokenHash, device.createdAtMs, device.expiresAtMs, device.issuedBy ?? null) >
      0
    )
  }

  const find = (tokenHash: string): DeviceRow | undefined => {
    const version = db.foreignVersion()
    if (version !== cachedAtVersion) cached.clear()
    cachedAtVersion = version
    const known = cached.get(tokenHash)
    if (known) return known
    const row = db.get<DeviceRow>(FIND, tokenHash)
    if (!row) return undefined
    const device = { ...row }
    cached.set(tokenHash, device)
    return device
  }

  return {
    async add(device) {
      if (!(await change(() => insert(device)))) throw alreadyKept()
    },
    findByTokenHash(tokenHash) {
      const device = db.read(() => find(tokenHash))
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
    rotate: (id, tokenHash) => change(() => db.run(ROTATE, tokenHash, id) > 0),
    touch: (seen) =>
      change(() => {
        for (const { id, atMs, address } of seen) db.run(TOUCH, atMs, address, id)
      }),
    version: () => db.read(() => db.foreignVersion()) + writer.commits,
    ...createPairingCodes(db, { clock, change, insert }),
  }
}

const alreadyKept = (): AppError => new AppError('conflict', 'A device of this id or token is kept already.')

/** One-time codes that turn into a device, known by their SHA-256. */
import type { Clock, DeviceStore, NewDevice, Role } from '@sluice/sdk'
import type { Database } from './database.ts'

const DROP_EXPIRED = 'DELETE FROM pairing_codes WHERE expires_at <= ?'
const DROP = 'DELETE FROM pairing_codes WHERE hash = ?'
const DROP_ALL = 'DELETE FROM pairing_codes'
const ADD = 'INSERT INTO pairing_codes (hash, role, expires_at) VALUES (?, ?, ?)'
const DROP_OLDEST = 'DELETE FROM pairing_codes WHERE rowid IN (SELECT rowid FROM pairing_codes ORDER BY rowid DESC LIMIT -1 OFFSET ?)'
const ROLE_OF_LIVE = 'SELECT role FROM pairing_codes WHERE hash = ? AND expires_at > ?'

interface Options {
  readonly clock: Clock
  /** Writes to the tables of devices and codes. */
  readonly change: <T>(unit: () => T) => Promise<T>
  /** Part of a write: adds the device, or returns false if its id or token is kept already. */
  readonly insert: (device: NewDevice) => boolean
}

export const createPairingCodes = (
  db: Database,
  { clock, change, insert }: Options,
): Pick<DeviceStore, 'addCode' | 'redeemCode' | 'dropCodes'> => ({
  addCode: ({ hash, role, expiresAtMs }, pendingMax) =>
    change(() => {
      db.run(DROP_EXPIRED, clock.nowMs())
      db.run(DROP, hash)
      db.run(ADD, hash, role, expiresAtMs)
      db.run(DROP_OLDEST, pendingMax)
    }),
  redeemCode: (codeHash, device) =>
    change(() => {
      const code = db.get<{ readonly role: Role }>(ROLE_OF_LIVE, codeHash, clock.nowMs())
      if (!code || !insert({ ...device, role: code.role })) return undefined
      db.run(DROP, codeHash)
      return code.role
    }),
  dropCodes: () => change(() => db.run(DROP_ALL)),
})

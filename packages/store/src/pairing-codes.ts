/** One-time codes that turn into a device, known by their SHA-256. */
import type { Clock, DeviceStore } from '@sluice/sdk'
import type { Database } from './database.ts'

const DROP_EXPIRED = 'DELETE FROM pairing_codes WHERE expires_at <= ?'
const DROP = 'DELETE FROM pairing_codes WHERE hash = ?'
const DROP_ALL = 'DELETE FROM pairing_codes'
const ADD = 'INSERT INTO pairing_codes (hash, expires_at) VALUES (?, ?)'
const DROP_OLDEST = 'DELETE FROM pairing_codes WHERE rowid IN (SELECT rowid FROM pairing_codes ORDER BY rowid DESC LIMIT -1 OFFSET ?)'
const IS_LIVE = 'SELECT 1 FROM pairing_codes WHERE hash = ? AND expires_at > ?'

type NewDevice = Parameters<DeviceStore['add']>[0]

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
  addCode: ({ hash, expiresAtMs }, pendingMax) =>
    change(() => {
      db.run(DROP_EXPIRED, clock.nowMs())
      db.run(DROP, hash)
      db.run(ADD, hash, expiresAtMs)
      db.run(DROP_OLDEST, pendingMax)
    }),
  redeemCode: (codeHash, device) =>
    change(() => {
      const redeemed = db.get(IS_LIVE, codeHash, clock.nowMs()) !== undefined && insert(device)
      if (redeemed) db.run(DROP, codeHash)
      return redeemed
    }),
  dropCodes: () => change(() => db.run(DROP_ALL)),
})

/** Devices in SQLite. Requests find theirs in memory, within one tick. */
import { BoundedMap } from '@sluice/kit'
import type { Clock, DeviceRow, DeviceStore } from '@sluice/sdk'
import type { Dialect } from '../cold/cold-database.ts'
import { createDevices, type DeviceColumns, deviceByToken, isValid, toDevice } from '../cold/devices.ts'
import { UNSIGNED } from '../cold/row-signing.ts'
import type { Database } from '../connection/database.ts'
import type { GroupCommit, Writer } from '../connection/group-commit.ts'
import { createColdDatabase } from '../connection/run-steps.ts'

/** The number of devices whose next request needs no query. */
const CACHED_MAX = 1000
const FIND = deviceByToken(UNSIGNED)

export function openDevices(db: Database, writer: GroupCommit, clock: Clock, dialect: Dialect): DeviceStore {
  /** Devices by token hash. Cleared after each change of this or another process. */
  const cached = new BoundedMap<string, DeviceRow>(CACHED_MAX)
  let foreignVersion = -1
  /** Clears the cache once a write is durable. */
  const clearing: Writer = {
    dropInSlices: (limit, drop) => writer.dropInSlices(limit, drop),
    write: async (unit) => {
      const result = await writer.write(unit)
      cached.clear()
      return result
    },
  }

  const find = (tokenHash: string): DeviceRow | undefined => {
    const version = db.foreignVersion()
    if (version !== foreignVersion) cached.clear()
    foreignVersion = version
    const known = cached.get(tokenHash)
    if (known) return known
    const row = db.get<DeviceColumns>(FIND, tokenHash)
    if (!row) return undefined
    const device = toDevice(row)
    cached.set(tokenHash, device)
    return device
  }

  return {
    ...createDevices(createColdDatabase(db, clearing, dialect), clock),
    findByTokenHash(tokenHash) {
      const device = db.read(() => find(tokenHash))
      return device && isValid(device, clock.nowMs()) ? device : undefined
    },
    version: () => db.read(() => db.foreignVersion()) + writer.commits,
  }
}

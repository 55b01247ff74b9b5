/** Devices in PostgreSQL. A request waits for the database, but not for long. */
import { endsWithin, systemClock } from '@sluice/kit'
import type { DeviceStore } from '@sluice/sdk'
import { createDevices, type DeviceColumns, deviceByToken, isValid, toDevice } from '@sluice/store/shared'
import type { Row } from '../connection/connection.ts'
import type { Database } from '../connection/database.ts'
import { awayError } from '../connection/postgres-error.ts'
import { createColdDatabase } from '../connection/run-steps.ts'
import { DIALECT } from './dialect.ts'

const VERSION = 'SELECT version FROM revocations'
/** How long a request waits to learn whether its token is good. */
const FIND_MS = 1_000

/** Rejects with `unavailable` when the database does not answer in time: a token that cannot be checked is not good. */
async function within<Result>(ms: number, answer: Promise<Result>): Promise<Result> {
  if (await endsWithin(answer, ms, systemClock)) return answer
  throw awayError('The store does not answer now.')
}

export function openDevices(db: Database): DeviceStore {
  const FIND = deviceByToken(db.signatures)
  return {
    ...createDevices(createColdDatabase(db, DIALECT), db.clock),
    async findByTokenHash(tokenHash) {
      const row = await within(FIND_MS, db.get<DeviceColumns & Row>(FIND, tokenHash))
      if (!row || !db.signatures.accepts('devices', row)) return undefined
      const device = toDevice(row)
      return isValid(device, db.clock.nowMs()) ? device : undefined
    },
    version: async () => (await db.get<{ version: number }>(VERSION))?.version ?? 0,
  }
}

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Clock, Store } from '@sluice/sdk'
import { openRowSigner } from '@sluice/store/row-signer'
import { secretKeyIds } from '@sluice/store/secret-box'
import { testHost } from '@sluice/testkit/host'
import { storeConformance } from '@sluice/testkit/store'
import { afterAll, beforeAll } from 'vitest'
import { openPostgresStore } from './open-store.ts'
import { startPostgres, type TestServer } from './testing/postgres-server.ts'

let server: TestServer
beforeAll(async () => {
  server = await startPostgres({ inMemory: true })
})
const dataDir = mkdtempSync(join(tmpdir(), 'store-keys-'))
afterAll(async () => {
  rmSync(dataDir, { recursive: true, force: true })
  await server.stop()
})

const schemas = new WeakMap<Store, string>()
let opened = 0

async function open(schema: string, clock: Clock): Promise<Store> {
  const keys = { keyIds: secretKeyIds(dataDir), signer: openRowSigner(dataDir) }
  const store = await openPostgresStore({
    url: server.url,
    schema,
    node: 'node',
    readers: 1,
    writers: 2,
    clock,
    log: testHost().log,
    ...keys,
  })
  schemas.set(store, schema)
  return store
}

storeConformance({
  name: 'PostgreSQL',
  open: (clock) => open(`store_${opened++}`, clock),
  reopen: (store, clock) => open(schemas.get(store) ?? '', clock),
  except: [
    {
      rule: 'nothing of an erased conversation remains in the files',
      why: 'PostgreSQL overwrites a deleted row after its vacuum, and recycles its write-ahead log later',
    },
  ],
  async settle(stores) {
    // Answers come in the order of the questions, so earlier questions have their answers, with everything that follows from these.
    for (let round = 0; round < 4; round++) {
      for (const store of stores) await Promise.resolve(store.devices.version()).catch(() => undefined)
      await new Promise((resolve) => setImmediate(resolve))
    }
  },
})

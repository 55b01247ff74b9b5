import type { Clock, Store } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { storeConformance } from '@sluice/testkit/store'
import { afterAll, beforeAll } from 'vitest'
import { openPostgresStore } from './open-store.ts'
import { startPostgres, type TestServer } from './testing/postgres-server.ts'

let server: TestServer
beforeAll(async () => {
  server = await startPostgres({ inMemory: true })
})
afterAll(() => server.stop())

const schemas = new WeakMap<Store, string>()
let opened = 0

async function open(schema: string, clock: Clock): Promise<Store> {
  const store = await openPostgresStore({ url: server.url, schema, node: 'node', readers: 1, writers: 2, clock, log: testHost().log })
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
    // Answers come in the order of the questions: what was asked before has its answer, and what follows from it, too.
    for (let round = 0; round < 4; round++) {
      for (const store of stores) await Promise.resolve(store.devices.version()).catch(() => undefined)
      await new Promise((resolve) => setImmediate(resolve))
    }
  },
})

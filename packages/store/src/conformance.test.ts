import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Clock, Store } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { storeConformance } from '@sluice/testkit/store'
import { afterAll } from 'vitest'
import { openStore } from './open-store.ts'

const folder = mkdtempSync(join(tmpdir(), 'store-'))
afterAll(() => rmSync(folder, { recursive: true }))

const files = new WeakMap<Store, string>()
let opened = 0

function open(file: string, clock: Clock, largeBytes?: number): Store {
  const store = openStore({ file, clock, log: testHost().log, largeBytes })
  files.set(store, file)
  return store
}

storeConformance({
  name: 'SQLite',
  open: (clock) => open(join(folder, `${opened++}.db`), clock),
  reopen: (store, clock) => open(files.get(store) ?? '', clock),
})

// Lists of a large file are read in a thread of their own.
storeConformance({
  name: 'SQLite, large',
  open: (clock) => open(join(folder, `${opened++}.db`), clock, 0),
  reopen: (store, clock) => open(files.get(store) ?? '', clock, 0),
})

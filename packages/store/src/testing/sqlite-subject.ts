/** The embedded store for the conformance suite, with files in a temporary folder. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Clock, Store } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import type { StoreSubject } from '@sluice/testkit/store'
import { afterAll } from 'vitest'
import { openTestStore } from './test-store.ts'

/** Lists of a file with at least `largeBytes` are read in a thread of their own. */
export function sqliteSubject(name: string, largeBytes?: number): StoreSubject {
  const folder = mkdtempSync(join(tmpdir(), 'store-'))
  afterAll(() => rmSync(folder, { recursive: true }))
  const files = new WeakMap<Store, string>()
  let opened = 0

  function open(file: string, clock: Clock): Store {
    const store = openTestStore({ file, clock, log: testHost().log, largeBytes })
    files.set(store, file)
    return store
  }

  return {
    name,
    open: (clock) => open(join(folder, `${opened++}.db`), clock),
    reopen: (store, clock) => open(files.get(store) ?? '', clock),
  }
}

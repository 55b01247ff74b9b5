import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Store } from '@sluice/sdk'
import { queuedTurn, turnEnd } from '@sluice/testkit/store-rules/samples'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openStore } from '../open-store.ts'

const LIMITS = { ttlMs: 300_000, keysMax: 100 }
const idempotency = { scope: 's', key: 'k' }

let folder: string
/** Two processes with one file. */
let stores: readonly [Store, Store]
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'keys-'))
  const file = join(folder, 'sluice.db')
  stores = [openStore({ file }), openStore({ file })]
})
afterEach(async () => {
  await Promise.all(stores.map((store) => store.close()))
  rmSync(folder, { recursive: true })
})

const endNow = (id: string) => turnEnd(id, { sessionId: 's', createdAtMs: Date.now() - 60_000, endedAtMs: Date.now(), idempotency })

test('of two processes that claim a key at once, one stores the end of its turn', async () => {
  for (const store of stores) expect(store.idempotency.claim(idempotency, LIMITS)).toBe('claimed')
  await stores[0].turns.finish(endNow('first'))
  await expect(stores[1].turns.finish(endNow('second'))).rejects.toMatchObject({ code: 'conflict' })
  expect(await stores[1].turns.get('second')).toBeUndefined()
  expect((await stores[1].sessions.get('s'))?.messageCount).toBe(2)
  expect(stores[1].idempotency.claim(idempotency, LIMITS)).toBe('done')
  expect(stores[1].idempotency.turnOf(idempotency)).toBe('first')
})

test('a turn that was not stored before does not end while a stored turn holds its key', async () => {
  for (const store of stores) expect(store.idempotency.claim(idempotency, LIMITS)).toBe('claimed')
  await stores[0].turns.enqueue(queuedTurn('first', { idempotency }))
  await expect(stores[1].turns.finish(endNow('second'))).rejects.toMatchObject({ code: 'conflict' })
  expect(stores[1].idempotency.claim(idempotency, LIMITS)).toBe('in_flight')
})

test('a repeat learns the id of a turn whose end is being stored', async () => {
  const [store] = stores
  await store.idempotency.claim(idempotency, LIMITS)
  const ended = store.turns.finish(endNow('first'))
  expect(store.idempotency.claim(idempotency, LIMITS)).toBe('in_flight')
  expect(store.idempotency.turnOf(idempotency)).toBe('first')
  await ended
})

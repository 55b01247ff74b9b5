import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openStore } from './open-store.ts'

const KILL_AFTER = 400

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'crash-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true })
})

test('what was acknowledged before SIGKILL is all there, each turn whole', async () => {
  const file = join(folder, 'sluice.db')
  const script = join(import.meta.dirname, '..', 'fixtures', 'tell-acknowledged.ts')
  const child = spawn(process.execPath, [script, file], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exit = once(child, 'exit')
  const acknowledged: string[] = []
  for await (const id of createInterface(child.stdout)) {
    acknowledged.push(id)
    if (acknowledged.length === KILL_AFTER) child.kill('SIGKILL')
  }
  expect(await exit).toEqual([null, 'SIGKILL'])
  expect(acknowledged.length).toBeGreaterThanOrEqual(KILL_AFTER)

  const store = openStore({ file, clock: testClock(Date.now()), log: testHost().log })
  expect(await store.check()).toEqual([])
  for (const id of acknowledged) {
    expect(await store.turns.get(id)).toMatchObject({ status: 'done' })
    expect(store.idempotency.claim({ scope: 's', key: id }, { ttlMs: 300_000, keysMax: 100_000 })).toBe('done')
  }
  const sessions = await store.sessions.list({ limit: 100 })
  const histories = await Promise.all(sessions.map(({ id }) => store.sessions.history(id, 100_000)))
  expect(histories.flat().length).toBeGreaterThanOrEqual(2 * acknowledged.length)
  expect(histories.flat().length % 2).toBe(0)
  expect(histories.map(({ length }) => length)).toEqual(sessions.map(({ messageCount }) => messageCount))
  await store.close()
}, 20_000)

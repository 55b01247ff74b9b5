import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Retention, Store } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { answerOne } from '@sluice/testkit/store-rules/delivery-samples'
import { turnEnd, user } from '@sluice/testkit/store-rules/samples'
import { audited } from '@sluice/testkit/store-rules/sop-samples'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openStore } from '../open-store.ts'

let folder: string
let file: string
let store: Store
const { clock, log } = testHost()

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'space-'))
  file = join(folder, 'sluice.db')
  store = openStore({ file, clock, log })
})
afterEach(async () => {
  await store.close()
  rmSync(folder, { recursive: true })
})

const KEEP: Retention = {
  endedBeforeMs: 0,
  idsBeforeMs: 0,
  keysBeforeMs: 9e12,
  historyBeforeMs: 0,
  bytesMax: Number.MAX_SAFE_INTEGER,
  nowMs: 1_000,
  limit: 2_000,
}
const MB = 1024 * 1024

/** Stores turns of about one megabyte for each hundred. */
async function storeTurns(count: number): Promise<void> {
  const turns = Array.from({ length: count }, (_, at) => at)
  await Promise.all(
    turns.map((at) =>
      store.turns.finish(turnEnd(`t${at}`, { sessionId: `s${at % 7}`, endedAtMs: at, messages: [user('x'.repeat(10_000))] })),
    ),
  )
}

test('the open file shrinks after much of it was pruned', async () => {
  await storeTurns(600)
  await store.close()
  const before = statSync(file).size
  store = openStore({ file, clock, log })
  expect(await store.prune({ ...KEEP, endedBeforeMs: 500, historyBeforeMs: 500 })).toMatchObject({ turns: 500, historyTurns: 500 })
  expect(before).toBeGreaterThan(6 * MB)
  expect(statSync(file).size).toBeLessThan(before / 2)
  expect(await store.check()).toEqual([])
})

test('the size limit drops the oldest rows, and little more than necessary', async () => {
  await storeTurns(600)
  for (const id of ['m1', 'm2']) await answerOne(store, id, [], { sessionId: 's0', endedAtMs: 9_000 })
  const { bytes } = await store.usage()
  const bytesMax = Math.round(bytes / 2)
  const { historyTurns } = await store.prune({ ...KEEP, bytesMax })
  const after = await store.usage()
  expect(after.bytes).toBeLessThanOrEqual(bytesMax)
  expect(after.bytes).toBeGreaterThan(bytesMax - 2 * MB)
  expect(historyTurns).toBeLessThan(400)
  const left = (
    await Promise.all([0, 1, 2, 3, 4, 5, 6].map((at) => store.sessions.messagesByTurn(`s${at}`, { after: 0, limit: 1_000 })))
  ).flat()
  expect(Math.min(...left.map(({ atMs }) => atMs))).toBe(historyTurns)
  expect(await store.prune({ ...KEEP, bytesMax })).toMatchObject({ historyTurns: 0, turns: 0, replies: 0 })
})

test('the used size does not include the audit log', async () => {
  await storeTurns(100)
  const before = (await store.usage()).bytes
  const reason = 'because '.repeat(500)
  for (let at = 0; at < 10; at++) await store.sops.record(Array.from({ length: 100 }, () => audited('run_completed', { reason })))
  const { bytes, fileBytes } = await store.usage()
  expect(fileBytes).toBeGreaterThan(4 * MB)
  expect(Math.abs(bytes - before)).toBeLessThan(MB)
})

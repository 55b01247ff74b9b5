import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { decision } from '@sluice/testkit/store-rules/approval-samples'
import { arrival, reply } from '@sluice/testkit/store-rules/delivery-samples'
import { sopRun, startOf } from '@sluice/testkit/store-rules/sop-samples'
import { own } from '@sluice/testkit/store-rules/store-bench'
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

/** Runs a fixture that prints a line for each acknowledged write, and kills it in the middle. Resolves to the lines. */
async function acknowledgedBeforeKill(fixture: string, file: string): Promise<string[]> {
  const script = join(import.meta.dirname, '..', 'fixtures', fixture)
  const child = spawn(process.execPath, [script, file], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exit = once(child, 'exit')
  const acknowledged: string[] = []
  for await (const line of createInterface(child.stdout)) {
    acknowledged.push(line)
    if (acknowledged.length === KILL_AFTER) child.kill('SIGKILL')
  }
  expect(await exit).toEqual([null, 'SIGKILL'])
  expect(acknowledged.length).toBeGreaterThanOrEqual(KILL_AFTER)
  return acknowledged
}

test('turns acknowledged before SIGKILL are stored completely', async () => {
  const file = join(folder, 'sluice.db')
  const acknowledged = await acknowledgedBeforeKill('finish-turns.ts', file)

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
})

test('messages acknowledged before SIGKILL are stored with their turns and replies', async () => {
  const file = join(folder, 'sluice.db')
  const acknowledged = await acknowledgedBeforeKill('answer-messages.ts', file)

  const store = openStore({ file, clock: testClock(Date.now()), log: testHost().log })
  expect(await store.check()).toEqual([])
  const rows = await store.inbox.list({ limit: 100_000 })
  const stateOf = new Map(rows.map(({ messageId, state }) => [messageId, state]))
  for (const line of acknowledged) {
    const [what, id = ''] = line.split(' ')
    if (what === 'answered') expect(stateOf.get(id)).toBe('done')
    expect(await store.inbox.keep(arrival(id))).toEqual([null])
  }
  for (const { number, state, messageId } of rows) {
    const turn = await store.turns.get(`turn of ${messageId}`)
    const replies = (await store.inbox.get(number))?.replies ?? []
    const expected = { done: ['done', 2], running: ['running', 0], pending: [undefined, 0], dead: [], limited: [], discarded: [] }
    expect([turn?.status, replies.length]).toEqual(expected[state])
  }
  const waiting = await (await own(store)).inbox.waiting({ after: 0, limit: 100_000 })
  expect(waiting.length).toBe(rows.filter(({ state }) => state !== 'done').length)
  await store.close()
})

test('runs, approvals and records acknowledged before SIGKILL are stored completely', async () => {
  const file = join(folder, 'sluice.db')
  const acknowledged = await acknowledgedBeforeKill('decide-approvals.ts', file)

  const store = openStore({ file, clock: testClock(Date.now()), log: testHost().log })
  expect(await store.check()).toEqual([])
  for (const line of acknowledged) {
    const [what, id = ''] = line.split(' ')
    const key = { runId: id, stepId: 'step-1' }
    const again = await store.sops.start([startOf(sopRun('again'))], { atMs: Date.now(), key: id })
    expect(again).toEqual([{ sop: 'deploy', status: 'started', runId: id }])
    expect(store.idempotency.claim({ scope: 's', key: id }, { ttlMs: 300_000, keysMax: 100_000 })).toBe('done')
    if (what !== 'started') expect(await store.approvals.decide(key, decision('rejected'))).toMatchObject({ won: false })
    if (what === 'settled') expect(await store.approvals.acknowledge(key, Date.now(), [reply('again')])).toEqual([])
  }
  const records = await store.sops.audit({ limit: 1_000_000 })
  expect(await store.sops.verify()).toMatchObject({ records: records.length, broken: null })
  const runs = await store.sops.runs({ limit: 1_000_000 })
  expect(records.filter(({ kind }) => kind === 'run_started').map(({ run }) => run)).toEqual(runs.map(({ id }) => id).reverse())
  const over = runs.filter(({ endedAtMs }) => endedAtMs !== null)
  expect(records).toHaveLength(runs.length + 2 * over.length)
  const outbox = await store.outbox.list({ limit: 1_000_000 })
  const stateOf = new Map((await store.inbox.list({ limit: 1_000_000 })).map(({ messageId, state }) => [messageId, state]))
  for (const approval of await store.approvals.list({ limit: 1_000_000 })) {
    const isPending = approval.state === 'pending'
    expect(stateOf.get(approval.runId) ?? 'pending').toBe(isPending ? 'pending' : 'done')
    expect(approval.prompts).toHaveLength(1)
    const said = outbox.filter(({ text }) => text === `settled ${approval.runId}`)
    expect(said).toHaveLength(approval.acknowledgedAtMs === null ? 0 : 1)
  }
  await store.close()
})

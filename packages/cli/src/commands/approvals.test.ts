/** `sluice approvals`, on a store that no other process has open. */
import { join } from 'node:path'
import { operator } from '@sluice/http/operator'
import { systemClock } from '@sluice/kit'
import { scratch } from '@sluice/qa/daemons/bundle'
import { sluiceWith } from '@sluice/qa/daemons/run-command'
import type { NewApproval, Store } from '@sluice/sdk'
import { openStore } from '@sluice/store'
import { afterEach, describe, expect, test } from 'vitest'

const AT_MS = Date.parse('2026-01-01T00:00:00.000Z')

const cleanups: (() => void)[] = []
afterEach(() => {
  for (const clean of cleanups.splice(0)) clean()
})

const question = (stepId: string): NewApproval => ({
  runId: 'run-1',
  stepId,
  gate: 'event',
  workflow: 'release',
  title: 'Deploy?',
  message: 'All tests\npass.',
  approveKeywords: ['yes'],
  rejectKeywords: ['no'],
  createdAtMs: AT_MS,
  expiresAtMs: null,
  token: `token-${stepId}`,
})

async function arrange(...steps: string[]) {
  const { dir, dispose } = scratch()
  cleanups.push(dispose)
  const on = async <Result>(work: (store: Store) => Promise<Result>): Promise<Result> => {
    const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
    const store = openStore({ file: join(dir, 'sluice.db'), clock: systemClock, log })
    try {
      return await work(store)
    } finally {
      await store.close()
    }
  }
  await on(async ({ approvals }) => {
    for (const step of steps) await approvals.open(question(step), [])
  })
  const run = sluiceWith([])
  const sluice = (...argv: string[]) => run('approvals', ...argv, '--data-dir', dir)
  const json = async (...argv: string[]): Promise<unknown> => JSON.parse((await sluice(...argv, '--json')).out)
  return { on, sluice, json }
}

describe('sluice approvals', () => {
  test('list shows the newest first, or one state only', async () => {
    const { sluice, json } = await arrange('s1', 's2')
    await sluice('approve', 'run-1', 's1')
    expect(await json('list')).toMatchObject([
      { step_id: 's2', state: 'pending' },
      { step_id: 's1', state: 'approved', by: operator() },
    ])
    expect(await json('list', '--state', 'pending')).toMatchObject([{ step_id: 's2' }])
    expect((await sluice('list')).out).toMatch(
      /created +run +step +workflow +title +state +by\n2026-01-01T00:00:00.000Z +run-1 +s2 +release +Deploy\?/,
    )
    expect((await sluice('list', '--state', 'expired')).out).toBe('no approval is expired\n')
    expect(await sluice('list', '--state', 'open')).toMatchObject({ code: 2, err: expect.stringContaining('--state wants one of') })
  })

  test('list and show name the device that decided, and JSON has its id', async () => {
    const { on, sluice, json } = await arrange('s1')
    const device = { id: 'd1', name: "Anna's phone", role: 'operator', createdAtMs: AT_MS, expiresAtMs: null } as const
    await on(({ devices }) => devices.add({ ...device, tokenHash: 'a'.repeat(64) }))
    const decision = { state: 'approved', by: 'device:d1', standing: 'operator', feedback: null, atMs: AT_MS } as const
    await on(({ approvals }) => approvals.decide({ runId: 'run-1', stepId: 's1' }, decision))
    for (const { out } of [await sluice('list'), await sluice('show', 'run-1', 's1')]) expect(out).toContain('device "Anna\'s phone"')
    expect(await json('list')).toMatchObject([{ by: 'device:d1' }])
  })

  test('show prints the request, and refuses an unknown step', async () => {
    const { sluice, json } = await arrange('s1')
    const { out } = await sluice('show', 'run-1', 's1')
    for (const line of [/workflow +release/, /state +pending/, /expires +never/, /All tests\npass\./]) expect(out).toMatch(line)
    expect(out).not.toContain('token-s1')
    expect(await json('show', 'run-1', 's1')).toMatchObject({ run_id: 'run-1', message: 'All tests\npass.' })
    expect(await sluice('show', 'run-1', 'other')).toMatchObject({ code: 1, err: expect.stringContaining('no approval of step other') })
  })

  test('a unique prefix of a run id selects the run', async () => {
    const { sluice, on } = await arrange('s1', 's2')
    await on(({ approvals }) => approvals.open({ ...question('s1'), runId: 'run-2', token: 'token-2' }, []))
    expect(await sluice('approve', 'run', 's2')).toMatchObject({ code: 0, out: 'approved run-1 s2\n' })
    expect(await sluice('approve', 'run', 's1')).toMatchObject({
      code: 2,
      err: expect.stringContaining('2 runs begin with run, such as run-'),
    })
    expect((await sluice('show', 'run-2', 's1')).out).toMatch(/state +pending/)
    expect(await sluice('approve', '', 's1')).toMatchObject({ code: 1 })
  })

  test('show indents a title, so that it cannot imitate a field', async () => {
    const { sluice, on } = await arrange()
    const title = 'Deploy?\nstate      approved\r\nby         cli:root'
    await on(({ approvals }) => approvals.open({ ...question('s1'), title }, []))
    const { out } = await sluice('show', 'run-1', 's1')
    expect(out.match(/^(state|by) .*$/gm)).toEqual([expect.stringMatching(/^state +pending$/)])
    expect(out).toMatch(/^title +Deploy\?\n +state {6}approved\n +by {9}cli:root$/m)
  })

  test('reject stores the feedback, and a second decision is refused', async () => {
    const { sluice, json, on } = await arrange('s1')
    expect(await json('reject', 'run-1', 's1', 'not on a Friday')).toMatchObject({ state: 'rejected', feedback: 'not on a Friday' })
    expect(await sluice('approve', 'run-1', 's1')).toMatchObject({
      code: 1,
      err: expect.stringContaining(`rejected before by ${operator()}`),
    })
    expect(await on(({ approvals }) => approvals.get({ runId: 'run-1', stepId: 's1' }))).toMatchObject({
      state: 'rejected',
      acknowledgedAtMs: null,
    })
    expect(await sluice('approve', 'run-1', 'other')).toMatchObject({ code: 1 })
    expect(await sluice('approve', 'run-1')).toMatchObject({ code: 2 })
  })

  test.each(['.', '..', ''])('the run %j is not found', async (run) => {
    const { sluice } = await arrange('s1')
    expect(await sluice('show', run, 's1')).toMatchObject({ code: 1, err: `sluice: '${run}' is not the name of anything\n` })
  })
})

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ALL_SHARDS, shardsLease } from '@sluice/sdk'
import { openStore } from '@sluice/store'
import { testHost } from '@sluice/testkit/host'
import { afterAll, expect, test } from 'vitest'
import { sopBench } from '../testing/bench.ts'
import { sop } from '../testing/samples.ts'

const folder = mkdtempSync(join(tmpdir(), 'sop-'))
afterAll(() => rmSync(folder, { recursive: true }))

test('on the real store, a run passes gates, steps and restarts with an intact log', async () => {
  const { clock, log } = testHost()
  const store = openStore({ file: join(folder, 'runs.db'), clock, log })
  const steps = [{}, { kind: 'checkpoint' as const }, {}]
  const { sops } = store.under(await store.leases.acquire(shardsLease(ALL_SHARDS)))
  const bench = await sopBench([sop('a', { mode: 'supervised', steps })], { store: sops })
  const until = async (holds: () => boolean | Promise<boolean>) => {
    while (!(await holds())) await bench.settle()
  }
  const runId = await bench.fire('a')
  const isAt = (status: string) => async () => (await store.sops.get(runId))?.status === status
  const hasTurn = () => bench.agent.live.length > 0
  const approve = async (stepId: string) => {
    await until(() => bench.approvals.all().some((approval) => approval.stepId === stepId))
    await bench.approvals.decide({ runId, stepId }, { state: 'approved', by: 'chat:anna', who: { standing: 'listed', isAsked: true } })
  }

  await approve('step-1')
  await until(hasTurn)
  await bench.restart()
  bench.agent.end(bench.turnOf(runId), { status: 'done', response: 'checked' })
  await until(isAt('paused_checkpoint'))
  await bench.restart()
  await approve('step-2')
  await until(hasTurn)
  bench.agent.end(bench.turnOf(runId), { status: 'done', response: 'rolled out' })
  await until(isAt('completed'))

  expect(await store.sops.verify()).toMatchObject({ broken: null })
  expect((await store.sops.audit({ limit: 100, run: runId })).map(({ kind, step }) => `${kind} ${step}`)).toEqual([
    'run_started null',
    'approval_requested 1',
    'approved 1',
    'step_started 1',
    'step_completed 1',
    'approval_requested 2',
    'approved 2',
    'step_completed 2',
    'step_started 3',
    'step_completed 3',
    'run_completed null',
  ])
  await bench.engine.stop(0)
  await store.close()
})

import { approvalBenches } from '@sluice/approvals/testing/approval-bench'
import { queuedTurn } from '@sluice/testkit/store-rules/samples'
import { expect, test } from 'vitest'
import { withdrawOrphanedApprovals } from './withdraw-approvals.ts'

const bench = approvalBenches()

test('withdraws only approvals whose turn or run is gone', async () => {
  const { store, ownership, approvals, ask, clock, settle } = await bench()
  await store.turns.enqueue(queuedTurn('kept'))
  const asked = [
    ['kept', 'tool'],
    ['lived in memory', 'tool'],
    ['forgotten run', 'sop'],
    ['a program', 'event'],
  ] as const
  for (const [runId, gate] of asked) await ask({ runId, gate })
  await clock.advance(1000)
  const startedAtMs = clock.nowMs()
  await ask({ runId: 'began since the start', gate: 'tool' })
  const [owned = expect.fail('the bench owns everything')] = ownership.held()
  await withdrawOrphanedApprovals({ store, approvals }, owned, startedAtMs)
  await settle()
  const states = await Promise.all(
    [...asked.map(([runId]) => runId), 'began since the start'].map(async (runId) => [
      runId,
      (await store.approvals.get({ runId, stepId: 'deploy' }))?.state,
    ]),
  )
  expect(Object.fromEntries(states)).toEqual({
    kept: 'pending',
    'lived in memory': 'cancelled',
    'forgotten run': 'cancelled',
    'a program': 'pending',
    'began since the start': 'pending',
  })
})

test('leaves the question of a turn that another node runs for its client', async () => {
  const { store, ownership, approvals, ask, clock, settle } = await bench()
  for (const runId of ['runs elsewhere', 'died with its node']) await ask({ runId, gate: 'tool' })
  await clock.advance(1000)
  const [owned = expect.fail('the bench owns everything')] = ownership.held()
  const turns = { isRunning: async (id: string) => id === 'runs elsewhere' }
  const shared = { ...store, cluster: { turns } } as unknown as typeof store
  await withdrawOrphanedApprovals({ store: shared, approvals }, owned, clock.nowMs())
  await settle()
  const states = ['runs elsewhere', 'died with its node'].map(
    async (runId) => (await store.approvals.get({ runId, stepId: 'deploy' }))?.state,
  )
  expect(await Promise.all(states)).toEqual(['pending', 'cancelled'])
})

import { approvalBenches } from '@sluice/approvals/testing/approval-bench'
import { queuedTurn } from '@sluice/testkit/store-rules/samples'
import { expect, test } from 'vitest'
import { withdrawQuestions } from './withdraw-questions.ts'

const bench = approvalBenches()

test('a start withdraws the questions of turns and runs that are gone, and no other', async () => {
  const { store, approvals, ask, clock, settle } = await bench()
  await store.turns.enqueue(queuedTurn('kept'))
  const questions = [
    ['kept', 'tool'],
    ['lived in memory', 'tool'],
    ['forgotten run', 'sop'],
    ['a program', 'event'],
  ] as const
  for (const [runId, gate] of questions) await ask({ runId, gate })
  await clock.advance(1000)
  const startedAtMs = clock.nowMs()
  await ask({ runId: 'began since the start', gate: 'tool' })
  await withdrawQuestions({ store, approvals, startedAtMs })
  await settle()
  const states = await Promise.all(
    [...questions.map(([runId]) => runId), 'began since the start'].map(async (runId) => [
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

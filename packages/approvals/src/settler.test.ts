import type { Approval, ApprovalKey } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import { Settler } from './settler.ts'

const tick = async () => {
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
}

function arrange() {
  const host = testHost()
  const settled: string[] = []
  const settler = new Settler({
    clock: host.clock,
    log: host.log,
    read: async (key: ApprovalKey) => ({ ...key, gate: 'sop', state: 'approved', settledAtMs: null }) as Approval,
    settled: async ({ stepId }) => void settled.push(stepId),
  })
  const enter = (...steps: string[]) => {
    for (const stepId of steps) settler.enter({ runId: 'r', stepId })
  }
  return { host, settler, settled, enter }
}

test('decisions wait until somebody takes them, each once', async () => {
  const { settler, settled, enter } = arrange()
  enter('a', 'b', 'a')
  await tick()
  expect(settled).toEqual([])
  const taken: string[] = []
  settler.taker('sop', async ({ stepId }) => void taken.push(stepId))
  await tick()
  enter('a')
  await tick()
  expect(taken.filter((step) => step === 'b')).toEqual(['b'])
  expect(settled.toSorted()).toEqual(['a', 'a', 'b'])
})

test('one that fails keeps no other waiting, and at most sixteen are at work', async () => {
  const { host, settler, settled, enter } = arrange()
  let running = 0
  let most = 0
  let isBroken = true
  settler.taker('sop', async ({ stepId }) => {
    most = Math.max(most, ++running)
    await tick()
    running -= 1
    if (isBroken && stepId.startsWith('bad')) throw new Error('not now')
  })
  const bad = Array.from({ length: 20 }, (_, index) => `bad${index}`)
  enter(...bad, 'good')
  await expect.poll(() => settled).toEqual(['good'])
  expect(most).toBe(16)
  isBroken = false
  for (let minute = 0; minute < 5; minute++) {
    await host.advance(60_000)
    await tick()
  }
  await expect.poll(() => settled.length).toBe(21)
})

test('a stop does not wait for a gate that never ends', async () => {
  const { host, settler, settled, enter } = arrange()
  settler.taker('sop', () => new Promise(() => {}))
  enter('a')
  await tick()
  const stopped = settler.stop()
  await host.advance(2000)
  await stopped
  enter('b')
  await tick()
  expect(settled).toEqual([])
})

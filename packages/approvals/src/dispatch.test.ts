import type { Approval, ApprovalKey } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import { Dispatcher } from './dispatch.ts'

const tick = async () => {
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
}

function arrange() {
  const host = testHost()
  const acknowledged: string[] = []
  const dispatcher = new Dispatcher({
    clock: host.clock,
    log: host.log,
    read: async (key: ApprovalKey) => ({ ...key, gate: 'sop', state: 'approved', acknowledgedAtMs: null }) as Approval,
    acknowledged: async ({ stepId }) => void acknowledged.push(stepId),
  })
  const enter = (...steps: string[]) => {
    for (const stepId of steps) dispatcher.enter({ runId: 'r', stepId })
  }
  return { host, dispatcher, acknowledged, enter }
}

test('decisions wait until their gate has a handler, each once', async () => {
  const { dispatcher, acknowledged, enter } = arrange()
  enter('a', 'b', 'a')
  await tick()
  expect(acknowledged).toEqual([])
  const handled: string[] = []
  dispatcher.handle('sop', async ({ stepId }) => void handled.push(stepId))
  await tick()
  enter('a')
  await tick()
  expect(handled.filter((step) => step === 'b')).toEqual(['b'])
  expect(acknowledged.toSorted()).toEqual(['a', 'a', 'b'])
})

test('a decision that fails delays no other, and at most 16 are dispatched at once', async () => {
  const { host, dispatcher, acknowledged, enter } = arrange()
  let running = 0
  let most = 0
  let isBroken = true
  dispatcher.handle('sop', async ({ stepId }) => {
    most = Math.max(most, ++running)
    await tick()
    running -= 1
    if (isBroken && stepId.startsWith('bad')) throw new Error('not now')
  })
  const bad = Array.from({ length: 20 }, (_, index) => `bad${index}`)
  enter(...bad, 'good')
  await expect.poll(() => acknowledged).toEqual(['good'])
  expect(most).toBe(16)
  isBroken = false
  for (let minute = 0; minute < 5; minute++) {
    await host.advance(60_000)
    await tick()
  }
  await expect.poll(() => acknowledged.length).toBe(21)
})

test('a stop does not wait for a handler that never ends', async () => {
  const { host, dispatcher, acknowledged, enter } = arrange()
  dispatcher.handle('sop', () => new Promise(() => {}))
  enter('a')
  await tick()
  const stopped = dispatcher.stop()
  await host.advance(2000)
  await stopped
  enter('b')
  await tick()
  expect(acknowledged).toEqual([])
})

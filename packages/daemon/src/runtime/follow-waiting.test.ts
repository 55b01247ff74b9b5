import { ALL_SHARDS, type ApprovalRequest, type PairedDevice, type WaitingWork } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { setUpProcesses, startProcess } from '../testing/two-processes.ts'
import { createFollowWaiting } from './follow-waiting.ts'

setUpProcesses()

const OPERATOR: PairedDevice = { id: 'ada', name: 'laptop', role: 'operator', origin: 'ada' }
const ASKER: PairedDevice = { id: 'bob', name: 'phone', role: 'client', origin: 'bob' }
const OTHER: PairedDevice = { id: 'cat', name: 'tablet', role: 'client', origin: 'cat' }

const call = (given: Partial<ApprovalRequest> = {}): ApprovalRequest => ({
  runId: 'turn',
  stepId: 'call',
  gate: 'tool',
  workflow: 'shell',
  title: 'The agent wants to use shell',
  message: 'rm -r private',
  owner: 'bob',
  decider: 'asker',
  standing: 'client',
  timeoutSecs: 60,
  channels: [],
  ...given,
})

async function follow() {
  const { runtime } = await startProcess({ shards: ALL_SHARDS })
  const seen: WaitingWork[] = []
  const unfollow = createFollowWaiting(runtime)((waiting) => seen.push(waiting))
  const told = () => seen.map((one) => (one.kind === 'approval' ? [OPERATOR, ASKER, OTHER].filter(one.mayDecide).map(({ id }) => id) : one))
  return { runtime, seen, told, unfollow }
}

test.each([
  ['a tool call of a device', call(), ['bob']],
  ['a tool call that only operators decide', call({ decider: 'operator' }), ['ada']],
  ['a question of a procedure', call({ gate: 'sop', workflow: 'deploy', decider: 'operator', owner: 'bob' }), ['ada']],
  ['a question of a program', { ...call({ gate: 'event' }), owner: undefined, decider: 'operator' } as unknown as ApprovalRequest, ['ada']],
])('%s is reported once, for the people who may decide it', async (_, question, deciders) => {
  const { runtime, told, seen } = await follow()
  await runtime.approvals.open(question)
  await runtime.approvals.open(question)
  await expect.poll(told).toEqual([deciders])
  const [waiting] = seen
  if (waiting?.kind !== 'approval') throw new Error('no approval')
  expect(JSON.stringify(waiting)).not.toContain('private')
  expect(await waiting.isOpen()).toBe(true)
  await runtime.approvals.decide(question, { state: 'cancelled', by: 'system' })
  expect(await waiting.isOpen()).toBe(false)
})

test('a dead letter is reported, and nothing after the end', async () => {
  const { runtime, seen, unfollow } = await follow()
  const event = { type: 'delivery', direction: 'outbound', channel: 'telegram', number: 7, error: 'private' } as const
  runtime.bus.emit({ ...event, state: 'sent' })
  runtime.bus.emit({ ...event, state: 'dead' })
  expect(seen).toEqual([{ kind: 'dead_letter', direction: 'outbound', channel: 'Telegram', number: 7 }])
  unfollow()
  runtime.bus.emit({ ...event, state: 'dead' })
  expect(seen).toHaveLength(1)
})

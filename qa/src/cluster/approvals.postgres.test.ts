/** Approvals of tool calls, on two nodes that share a database. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Approver } from '@sluice/agent'
import { askAboutTool, toolApprovalRequest } from '@sluice/approvals'
import type { ApprovalKey } from '@sluice/sdk'
import { expect, test, vi } from 'vitest'
import { type LinkedRuntime, sessionOf, setUpRuntimes, start } from './test-runtimes.ts'

setUpRuntimes()

const request = (session: string, text: string) => ({ source: 'ws', session, text, client: 'c1' as never, owner: 'local' })

/** Asks over the registry of the node, as a WebSocket chat does. */
const approveOn =
  ({ runtime }: LinkedRuntime): Approver =>
  (asked, signal) =>
    askAboutTool({ approvals: runtime.approvals, signal }, { ...toolApprovalRequest(asked, 120), channels: [] })

const pendingOf = async ({ runtime }: LinkedRuntime): Promise<ApprovalKey> => {
  const [approval] = await runtime.store.approvals.list({ limit: 10, state: 'pending' })
  return approval ?? expect.fail('no approval waits')
}

test('a decision on any node is made once and continues the turn within a second', async () => {
  const [first, second] = [await start(), await start()]
  for (const session of [sessionOf(first, 'a'), sessionOf(second, 'b')]) {
    const acted = first.acted
    const turn = first.runtime.agent.run({ ...request(session, 'act now'), approve: approveOn(first) })
    const key = await vi.waitFor(() => pendingOf(second), 20_000)
    const startedMs = performance.now()
    const decisions = await Promise.all(
      [first, second, first, second].map(({ runtime }, at) =>
        runtime.approvals.decide(key, {
          state: at < 2 ? 'approved' : 'rejected',
          by: `operator-${at}`,
          who: { standing: 'operator', isAsked: false },
        }),
      ),
    )
    expect(decisions.filter(({ won }) => won)).toHaveLength(1)
    expect(await turn).toMatchObject({ text: 'answer to act now' })
    expect(performance.now() - startedMs).toBeLessThan(1000)
    const { state } = decisions[0]?.approval ?? expect.fail('it was decided')
    expect(first.acted - acted).toBe(state === 'approved' ? 1 : 0)
  }
  expect(second.acted).toBe(0)
}, 60_000)

test('a decision given on a node that does not run the turn continues it within a second', async () => {
  const [first, second] = [await start(), await start()]
  const turn = first.runtime.agent.run({ ...request(sessionOf(second, 'a'), 'act now'), approve: approveOn(first) })
  const key = await vi.waitFor(() => pendingOf(second), 20_000)
  const startedMs = performance.now()
  expect(
    await second.runtime.approvals.decide(key, { state: 'approved', by: 'device:d1', who: { standing: 'operator', isAsked: false } }),
  ).toMatchObject({ won: true })
  await turn
  expect(performance.now() - startedMs).toBeLessThan(1000)
  expect([first.acted, second.acted]).toEqual([1, 0])
  await expect.poll(async () => (await first.runtime.store.approvals.get(key))?.acknowledgedAtMs).not.toBeNull()
}, 60_000)

test('the question of a stored turn outlives its node, and the answer continues the turn on another one, once', async () => {
  const first: LinkedRuntime = await start({ approve: (...call) => approveOn(first)(...call) })
  const second: LinkedRuntime = await start({ approve: (...call) => approveOn(second)(...call) })
  const session = sessionOf(second, 'a')
  const turn = first.runtime.agent.run({ ...request(session, 'act now'), idempotency: { scope: 's', key: 'k' } })
  turn.catch(() => undefined)
  const key = await vi.waitFor(() => pendingOf(second), 20_000)
  await first.link.cut('reset')
  // The other node asks the same question, and finds it open.
  await expect.poll(() => second.runtime.agent.load().sessions).toBe(1)
  await first.link.restore()
  await sleep(3000)
  expect(await second.runtime.store.approvals.get(key)).toMatchObject({ state: 'pending' })
  await first.runtime.approvals.decide(key, { state: 'approved', by: 'device:d1', who: { standing: 'operator', isAsked: false } })
  expect(await turn).toMatchObject({ text: 'answer to act now' })
  expect([first.acted, second.acted]).toEqual([0, 1])
}, 60_000)

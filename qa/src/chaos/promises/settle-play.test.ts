import { startFakeProvider } from '@sluice/testkit/fake-provider'
import { expect, onTestFinished, test } from 'vitest'
import { settlePlay } from './settle-play.ts'

const IDLE = { turns_running: 0, turns_queued: 0, messages_pending: 0, replies_pending: 0, commits_queued: 0 }
const STILL_MS_MAX = 1000

/** Settles with a daemon that reports these counts of pending messages, one after the other, and the last one for ever. */
async function settled(
  pending: readonly number[],
  { left, moved = () => 0 }: { left?: () => string | undefined; moved?: () => number } = {},
) {
  let polls = 0
  const daemon = await startFakeProvider(() => ({
    status: 200,
    body: { ...IDLE, messages_pending: pending[Math.min(polls++, pending.length - 1)] },
  }))
  onTestFinished(() => daemon.close())
  const startedMs = performance.now()
  const signal = AbortSignal.timeout(20_000)
  const due = await settlePlay({ url: daemon.url, left: left ?? (() => undefined), moved, stillMsMax: STILL_MS_MAX, signal })
  return { due, tookMs: performance.now() - startedMs }
}

test('waits longer than the limit while rows finish', async () => {
  const { due, tookMs } = await settled(Array.from({ length: 15 }, (_, at) => 14 - at))
  expect(due).toBeUndefined()
  expect(tookMs).toBeGreaterThan(STILL_MS_MAX)
})

test('waits longer than the limit while requests arrive', async () => {
  const endMs = performance.now() + 2 * STILL_MS_MAX
  const { due } = await settled([0], { left: () => (performance.now() < endMs ? 'a message' : undefined), moved: () => performance.now() })
  expect(due).toBeUndefined()
})

test('gives up when nothing moves, and names what is left', async () => {
  expect((await settled([2])).due).toBe('messages_pending is 2')
  expect((await settled([0], { left: () => 'a message did not reach the model' })).due).toBe('a message did not reach the model')
})

import { expect, test } from 'vitest'
import { bench, clock, host, message, settle, setUpDeliveries, states } from '../testing/delivery-bench.ts'

setUpDeliveries()

test('a message from before a restore is a dead letter, and runs once an operator replays it', async () => {
  const restoredAtMs = clock.nowMs() - 1000
  const made = await bench({ restoredAtMs })
  const { emitted } = host
  await made.receive(message('old', { sentAtMs: restoredAtMs }), message('new', { sentAtMs: restoredAtMs + 1 }))
  await settle()
  expect(made.turns.map(({ text }) => text)).toEqual(['text of new'])
  expect(await states(made)).toEqual({ inbox: ['done', 'dead'], outbox: ['sent'] })
  const [old] = await made.store.inbox.list({ limit: 1, state: 'dead' })
  expect(old).toMatchObject({ messageId: 'old', error: expect.stringContaining('may have been answered') })
  const dead = { type: 'delivery', direction: 'inbound', channel: 'x', number: old?.number, state: 'dead', error: old?.error }
  expect(emitted).toContainEqual(dead)
  expect(await made.store.inbox.replay(old?.number ?? 0)).toBe(true)
  made.deliveries.wake()
  await settle()
  expect(made.turns.map(({ text }) => text)).toEqual(['text of new', 'text of old'])
})

test('a message without a time runs after a restore', async () => {
  const made = await bench({ restoredAtMs: clock.nowMs() })
  const { sentAtMs: _, ...timeless } = message('m1')
  await made.receive(timeless)
  await settle()
  expect(made.turns).toHaveLength(1)
})

import { assistant, user } from '@sluice/testkit/store-rules/samples'
import { describe, expect, test } from 'vitest'
import {
  bench,
  clock,
  type DeliveryBench,
  type DeliveryBenchOptions,
  message,
  settle,
  setUpDeliveries,
  until,
} from '../testing/delivery-bench.ts'

setUpDeliveries()

const HOUR_MS = 3_600_000

/** Writes a message, waits for its answer and returns what the turn could read of the conversation. */
async function say(made: DeliveryBench, id: string): Promise<number> {
  const before = made.sent.length
  await made.receive(message(id))
  await until(() => made.sent.length > before)
  await settle()
  const session = made.turns.at(-1)?.session ?? ''
  const { messages } = await made.store.sessions.conversation(session, 100)
  return messages.length
}

const resetting = (reset: Partial<NonNullable<DeliveryBenchOptions['reset']>>, more: DeliveryBenchOptions = {}) =>
  bench({ loopTurns: 100, reset: { idleHours: undefined, dailyAt: undefined, timezone: 'UTC', ...reset }, ...more })

describe('a conversation', () => {
  test('resets after the hours without a turn, and its earlier messages stay', async () => {
    const made = await resetting({ idleHours: 2 })
    expect(await say(made, 'm1')).toBe(1)
    await clock.advance(2 * HOUR_MS - 1)
    expect(await say(made, 'm2')).toBe(2)
    await clock.advance(2 * HOUR_MS)
    expect(await say(made, 'm3')).toBe(1)
    const session = made.turns[0]?.session ?? ''
    expect(made.endedCommands).toEqual([session])
    expect(await made.store.sessions.messagesByTurn(session, { after: 0, limit: 10 })).toHaveLength(3)
  })

  test('resets at an hour of the time zone, once a day', async () => {
    const instant = new Date(clock.nowMs() + 60_000)
    const dailyAt = instant.toLocaleTimeString('en-GB', { timeZone: 'Asia/Kolkata', timeStyle: 'short' })
    const made = await resetting({ dailyAt, timezone: 'Asia/Kolkata' })
    expect(await say(made, 'm1')).toBe(1)
    await clock.advance(instant.getTime() - 1 - clock.nowMs())
    expect(await say(made, 'm2')).toBe(2)
    await clock.advance(1)
    expect(await say(made, 'm3')).toBe(1)
    await clock.advance(2 * HOUR_MS)
    expect(await say(made, 'm4')).toBe(2)
  })

  test('goes on while a question waits in it', async () => {
    let isAsking = true
    const made = await resetting({ idleHours: 1 }, { isAsking: () => isAsking })
    await say(made, 'm1')
    await clock.advance(HOUR_MS)
    expect(await say(made, 'm2')).toBe(2)
    isAsking = false
    await clock.advance(HOUR_MS)
    expect(await say(made, 'm3')).toBe(1)
  })

  test('goes on in a turn that had begun before', async () => {
    const made = await resetting({ idleHours: 1 })
    await say(made, 'm1')
    const session = made.turns[0]?.session ?? ''
    await made.receive(message('m2'))
    await until(() => made.sent.length === 2)
    await made.store.turns.finish({
      id: 'later',
      agent: 'main',
      sessionId: session,
      source: 'x',
      status: 'done',
      input: 'i',
      response: 'r',
      model: 'm',
      error: null,
      inputTokens: 0,
      outputTokens: 0,
      costUsd: 0,
      attempts: 1,
      createdAtMs: clock.nowMs(),
      endedAtMs: clock.nowMs(),
      messages: [user('i'), assistant('r')],
    })
    await clock.advance(HOUR_MS - 1)
    expect(await say(made, 'm3')).toBe(5)
  })
})

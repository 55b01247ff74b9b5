import { queryObjects } from 'node:v8'
import { callProvider } from '@sluice/kit'
import { ShardOwnership } from '@sluice/ownership'
import { AppError, type Channel, type Outbound } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { bench, clock, host, message, open, settle, setUpDeliveries } from './testing/delivery-bench.ts'

setUpDeliveries()

test('answering leaves no abort signal and no timer behind', async () => {
  const accepted = (async () => Response.json({ id: 'p' })) as typeof fetch
  const post = async (outbound: Outbound, signal: AbortSignal) => {
    const call = { fetch: accepted, provider: 'x', url: 'http://127.0.0.1:9', method: 'POST', body: outbound, signal }
    return (await callProvider(call)).json as { id: string }
  }
  let edits = 0
  // The reply replaces the draft.
  const update: Channel['update'] = async (_, __, outbound, signal) => {
    await post(outbound, signal)
    edits += 1
  }
  const made = await bench({
    send: (_, outbound, signal) => post(outbound, signal),
    // The turn takes so long that typing is shown.
    turn: async ({ text }) => clock.sleep(500).then(() => text),
    channel: { draftEveryMs: 1, typing: async (_, signal) => signal.throwIfAborted(), update },
  })
  const answered = async (count: number) => {
    const wanted = edits + count
    await made.receive(...Array.from({ length: count }, () => message(`m${crypto.randomUUID()}`)))
    for (let round = 0; round < 10 * count && edits < wanted; round++) {
      await clock.advance(500)
      await settle()
    }
    expect([edits, made.deliveries.load()]).toEqual([wanted, { messages: 0, replies: 0 }])
    // The requests refer to the draft and to the typing.
    made.turns.splice(0)
    return { signals: queryObjects(AbortSignal, { format: 'count' }), timers: clock.sleeping }
  }
  const before = await answered(2)
  const after = await answered(40)
  expect(after.signals - before.signals).toBeLessThan(10)
  expect(after.timers).toBe(before.timers)
})

test('a message that another process stores during the start is not missed', async () => {
  const [store, other] = [open(), open()]
  const ownership = new ShardOwnership({ store, clock, log: host.log })
  await ownership.start()
  const onShards = ownership.onShards.bind(ownership)
  ownership.onShards = async (listener) => {
    const leave = await onShards(listener)
    const arrived = { message: message('m'), session: 'x:our-number:+15550002222' }
    const arrival = { channel: 'x', verdict: 'test', raw: null, receivedAtMs: clock.nowMs(), messages: [arrived] }
    await other.inbox.keep(arrival)
    return leave
  }
  const made = await bench({ store, ownership })
  await clock.advance(1000)
  await settle()
  expect(made.turns.map(({ text }) => text)).toEqual(['text of m'])
})

test('reads all waiting rows more seldom the longer that takes, and misses none of another process', async () => {
  const [store, other] = [open(), open()]
  const ownership = new ShardOwnership({ store, clock, log: host.log })
  await ownership.start()
  const onShards = ownership.onShards.bind(ownership)
  let looks = 0
  ownership.onShards = (listener, leave) =>
    onShards((owned) => {
      const waiting: typeof owned.inbox.waiting = async (page) => {
        looks++
        await clock.sleep(100)
        return owned.inbox.waiting(page)
      }
      return listener({ ...owned, inbox: { ...owned.inbox, waiting } })
    }, leave)
  const made = bench({ store, ownership })
  await settle()
  await clock.advance(100)
  const { turns } = await made
  looks = 0
  for (let second = 0; second < 20; second++) {
    const arrived = { message: message(`m${second}`), session: 'x:our-number:+15550002222' }
    await other.inbox.keep({ channel: 'x', verdict: 'test', raw: null, receivedAtMs: clock.nowMs(), messages: [arrived] })
    for (let step = 0; step < 10; step++) {
      await clock.advance(100)
      await settle()
    }
  }
  expect(looks).toBeGreaterThan(5)
  expect(looks).toBeLessThan(12)
  for (let step = 0; step < 40; step++) {
    await clock.advance(100)
    await settle()
  }
  expect(turns).toHaveLength(20)
})

describe('a connection that a channel holds', () => {
  test('delivers durably, is restarted after a failure, and ends with the daemon', async () => {
    let connections = 0
    let isOpen = false
    const made = await bench({
      channel: {
        async listen(deliver, { signal }) {
          connections += 1
          await deliver(message(`m${connections}`))
          if (connections === 1) throw new AppError('upstream', 'cut')
          isOpen = true
          await clock.sleep(1_000_000_000, signal)
          isOpen = false
        },
      },
    })
    await settle()
    await clock.advance(1000)
    await settle()
    expect(connections).toBe(2)
    expect(made.turns).toHaveLength(2)
    expect(isOpen).toBe(true)
    await made.deliveries.stop(0)
    expect(isOpen).toBe(false)
  })
})

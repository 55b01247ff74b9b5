import { AppError, type Channel } from '@sluice/sdk'
import { expect, test } from 'vitest'
import {
  bench,
  clock,
  type DeliveryBench,
  type DeliveryBenchOptions,
  host,
  message,
  open,
  running,
  settle,
  setUpDeliveries,
} from './testing/delivery-bench.ts'

setUpDeliveries()

const HOUR_MS = 3_600_000
const CONFIG = { max_age_hours: 2 }

const pass = async (ms: number) => {
  await clock.advance(ms)
  await settle()
}

const end = async ({ ownership }: DeliveryBench) => {
  await running.pop()?.stop(0)
  await ownership.stop()
}

/** A message that waits for the model, and a reply that waits for the platform of the channel `x`. */
async function waiting() {
  const store = open()
  const made = await bench({
    store,
    config: CONFIG,
    turn({ text }) {
      if (text === 'text of m1') throw new AppError('upstream', 'the model is away', { isPassing: true })
      return text
    },
    send: async () => Promise.reject(new AppError('unavailable', 'the platform is away')),
  })
  await made.receive(message('m1'), message('m2', { sender: '+15550003333', to: { to: '+15550003333' } }))
  await settle()
  expect(await store.inbox.counts()).toMatchObject({ pending: 1 })
  expect(await store.outbox.counts()).toMatchObject({ failed: 1 })
  await end(made)
  return store
}

const health = () => host.emitted.flatMap((event) => (event.type === 'channel_health' ? [[event.channel, event.state, event.detail]] : []))

test('what waits for a channel that was removed is reported, and given up when it is too old', async () => {
  const store = await waiting()
  const options = { store, config: CONFIG, channel: { name: 'y' } } satisfies DeliveryBenchOptions
  const other = await bench(options)
  await pass(60_000)
  const detail = 'it was removed from the configuration, or does not start; 1 message and 1 reply wait for it, each at most 2 hours'
  expect(health()).toEqual([['x', 'down', detail]])
  await pass(HOUR_MS / 2)
  expect(health()).toEqual([['x', 'down', detail]])
  await clock.advance(2 * HOUR_MS)
  await pass(60_000)
  expect(await store.inbox.counts()).toEqual({ pending: 0, running: 0, dead: 1 })
  expect(await store.outbox.counts()).toMatchObject({ failed: 0, queued: 0, dead: 1 })
  const [dead] = await store.inbox.list({ limit: 1, state: 'dead' })
  expect(dead?.error).toContain('The channel x is not there')
  const deaths = host.emitted.filter((event) => event.type === 'delivery' && event.state === 'dead')
  expect(deaths).toMatchObject([{ direction: 'inbound' }, { direction: 'outbound' }])
  expect(health().at(-1)).toEqual(['x', 'ok', null])
  // It can be replayed once the channel is there again.
  await end(other)
  const back = await bench({ store })
  expect(await store.inbox.replay(dead?.number ?? 0)).toBe(true)
  back.deliveries.wake()
  await settle()
  expect(back.sent).toMatchObject([{ text: 're: text of m1' }])
})

test('what is too old when the daemon starts without the channel is given up an hour later', async () => {
  const store = await waiting()
  await clock.advance(72 * HOUR_MS)
  await bench({ store, config: CONFIG, channel: { name: 'y' } })
  await pass(60_000)
  expect(health()).toMatchObject([['x', 'down', expect.stringContaining('1 message and 1 reply wait')]])
  await clock.advance(HOUR_MS - 60_000)
  await settle()
  expect(await store.inbox.counts()).toMatchObject({ pending: 1 })
  expect(await store.outbox.counts()).toMatchObject({ failed: 1 })
  await pass(120_000)
  expect(await store.inbox.counts()).toMatchObject({ pending: 0, dead: 1 })
  expect(await store.outbox.counts()).toMatchObject({ failed: 0, dead: 1 })
})

test('a channel that is there again and does not work is not reported as working', async () => {
  const store = await waiting()
  const others: Channel[] = []
  const made = await bench({ store, config: CONFIG, channel: { name: 'y' }, others })
  await pass(60_000)
  expect(health()).toMatchObject([['x', 'down', expect.stringContaining('removed')]])
  others.push({ ...made.channel, name: 'x', health: () => ({ state: 'down', detail: 'x answered 401' }) })
  await pass(120_000)
  expect(health().slice(1)).toEqual([['x', 'down', 'x answered 401']])
})

test('a channel that did not work and was removed is no longer reported, where nothing waits for it', async () => {
  const broken: Channel = {
    name: 'z',
    allow: ['*'],
    matches: () => true,
    limits: { text: 100, unit: 'utf16' },
    send: async () => ({ id: 'p' }),
    health: () => ({ state: 'down', detail: 'z answered 401' }),
  }
  const others = [broken]
  await bench({ others })
  await pass(60_000)
  others.length = 0
  await pass(120_000)
  expect(health()).toEqual([
    ['z', 'down', 'z answered 401'],
    ['z', 'ok', null],
  ])
})

test('a message that runs is not given up when its channel is removed, and one that was replayed waits again', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const store = open()
  const others: Channel[] = []
  const made = await bench({
    store,
    config: CONFIG,
    others,
    async turn({ text }) {
      await promise
      return text
    },
  })
  others.push({ ...made.channel, name: 'z' })
  await made.deliveries.receive(others[0] as Channel, {
    raw: null,
    verified: { by: 'test' },
    receivedAtMs: clock.nowMs(),
    messages: [message('m1')],
  })
  await settle()
  others.length = 0
  await clock.advance(4 * HOUR_MS)
  await pass(120_000)
  expect(host.emitted.filter((event) => event.type === 'delivery' && event.state === 'dead')).toEqual([])
  expect(await store.inbox.counts()).toMatchObject({ running: 1, dead: 0 })
  resolve()
  await settle()
  expect(await store.inbox.counts()).toEqual({ pending: 0, running: 0, dead: 0 })
  // Its reply waits for the channel, counted from a replay.
  await clock.advance(4 * HOUR_MS)
  await pass(60_000)
  const [dead] = await store.outbox.list({ limit: 1 })
  expect(dead?.state).toBe('dead')
  expect(await store.outbox.replay(dead?.number ?? 0)).toBe(true)
  await pass(120_000)
  expect((await store.outbox.list({ limit: 1 }))[0]?.state).toBe('queued')
})

test('what waits in its lane when its channel is removed is given up too, and no channel that is there', async () => {
  const store = open()
  const channel: Channel = {
    name: 'z',
    allow: ['*', 'anyone'],
    matches: () => true,
    limits: { text: 100, unit: 'utf16' },
    send: async () => Promise.reject(new AppError('unavailable', 'the platform is away')),
  }
  const others = [channel]
  const made = await bench({ store, config: CONFIG, others, send: async () => Promise.reject(new AppError('unavailable', 'away')) })
  await made.receive(message('m1'))
  await made.deliveries.receive(channel, {
    raw: null,
    verified: { by: 'test' },
    receivedAtMs: clock.nowMs(),
    messages: [message('m2', { sender: '+15550004444', to: { to: '+15550004444' } })],
  })
  await settle()
  others.length = 0
  await pass(60_000)
  expect(health()).toEqual([['z', 'down', expect.stringContaining('0 messages and 1 reply')]])
  expect(made.deliveries.load().replies).toBe(2)
  clock.jump(48 * HOUR_MS)
  await pass(120_000)
  expect(made.deliveries.load().replies).toBe(2)
  await clock.advance(2 * HOUR_MS)
  await pass(60_000)
  expect(made.deliveries.load().replies).toBe(0)
  const rows = await store.outbox.list({ limit: 10 })
  expect(rows.map(({ channel: name, state }) => [name, state])).toEqual([
    ['z', 'dead'],
    ['x', 'dead'],
  ])
})

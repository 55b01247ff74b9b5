import type { Inbound } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import {
  bench,
  bodyWebhook,
  clock,
  type DeliveryBench,
  message,
  open,
  running,
  settle,
  setUpDeliveries,
  states,
  until,
} from '../testing/delivery-bench.ts'
import { readMessage } from './read-message.ts'

setUpDeliveries()

const HOUR_MS = 3_600_000
const CHANNEL = { webhook: bodyWebhook() }
const textsOf = ({ turns }: DeliveryBench) => turns.map(({ text }) => text)

/** Stores the messages in one request, as a daemon that ends before their turns. */
async function keepUnstarted(...messages: Inbound[]): Promise<DeliveryBench['store']> {
  const store = open()
  const raw = Buffer.from(JSON.stringify(messages))
  const rows = messages.map((one) => ({ message: one, session: `session of ${one.id}`, kind: 'turn' as const }))
  await store.inbox.keep({ channel: 'x', verdict: 'test', raw, receivedAtMs: clock.nowMs(), messages: rows })
  return store
}

describe('a message of which the request is stored', () => {
  test('runs as it was parsed at intake, without being parsed again', async () => {
    let parsed = 0
    const webhook = bodyWebhook((messages) => {
      parsed++
      return messages
    })
    const made = await bench({ channel: { webhook } })
    await made.receive(message('m1'))
    await until(() => made.sent.length === 1)
    expect(parsed).toBe(0)
    expect(await made.store.inbox.get(1)).toMatchObject({ state: 'done', message: null, raw: expect.any(Uint8Array) })
  })

  test('is parsed again after a restart and for a replay', async () => {
    const odd = message('m\ud800', { text: 'half \ud800' })
    const made = await bench({ store: await keepUnstarted(message('m1'), odd), channel: CHANNEL })
    await until(() => made.sent.length === 2)
    expect(textsOf(made).toSorted()).toEqual(['half \ufffd', 'text of m1'])
    await made.store.inbox.replay(1)
    made.deliveries.wake()
    await until(() => made.sent.length === 3)
    expect(textsOf(made).at(-1)).toBe('text of m1')
  })

  test('is edited and deleted before its turn begins', async () => {
    const released = Promise.withResolvers<void>()
    const turn = async ({ text }: { readonly text: string }): Promise<string> => {
      if (text === 'text of m1') await released.promise
      return `re: ${text}`
    }
    const made = await bench({ channel: CHANNEL, turn })
    await made.receive(message('m1'), message('m2'), message('m3'))
    await until(() => made.turns.length === 1)
    await made.receive(
      message('e1', { text: 'edited', changes: { message: 'm2', what: 'edited' } }),
      message('e2', { text: '', changes: { message: 'm3', what: 'deleted' } }),
    )
    await settle()
    released.resolve()
    await until(() => made.sent.length === 2)
    expect(textsOf(made)).toEqual(['text of m1', 'edited'])
    expect((await states(made)).inbox).toEqual(Array(5).fill('done'))
    await made.receive(message('e3', { text: 'too late', changes: { message: 'm1', what: 'edited' } }))
    await settle()
    await made.receive(message('m4'))
    await until(() => made.sent.length === 3)
    expect(textsOf(made).at(-1)).toContain('which began: "text of m1" It now reads: "too late"')
  })
})

describe('a stored request that no longer has the message', () => {
  const NOTHING = bodyWebhook(() => [])

  test('is kept until another configuration finds it', async () => {
    const made = await bench({ store: await keepUnstarted(message('m1')), channel: { webhook: NOTHING } })
    for (let at = 0; at < 3; at++) {
      await clock.advance(10_000)
      await settle()
    }
    expect(await states(made)).toEqual({ inbox: ['pending'], outbox: [] })
    Object.assign(made.channel, CHANNEL)
    await clock.advance(10_000)
    await until(() => made.sent.length === 1)
    expect(textsOf(made)).toEqual(['text of m1'])
  })

  test('is a dead letter after max_age_hours, also over a restart, and can be replayed', async () => {
    const made = await bench({ store: await keepUnstarted(message('m1')), channel: { webhook: NOTHING }, config: { max_age_hours: 2 } })
    await clock.advance(HOUR_MS)
    await settle()
    for (const deliveries of running.splice(0)) await deliveries.stop(0)
    const again = await bench({ channel: { webhook: NOTHING }, config: { max_age_hours: 2 } })
    await clock.advance(HOUR_MS)
    await until(() => again.deliveries.load().messages === 0)
    const entry = await again.store.inbox.get(1)
    expect(entry).toMatchObject({ state: 'dead', error: expect.stringContaining('finds no such message in the request') })
    expect(made.turns).toEqual([])
    Object.assign(again.channel, CHANNEL)
    expect(await again.store.inbox.replay(1)).toBe(true)
    again.deliveries.wake()
    await until(() => again.sent.length === 1)
  })

  test('waits for its channel, and is given up when it is too old and the channel has been absent for an hour', async () => {
    const made = await bench({ store: await keepUnstarted(message('m1')), channel: { name: 'other' }, config: { max_age_hours: 1 } })
    await clock.advance(HOUR_MS / 2)
    await settle()
    expect(await states(made)).toEqual({ inbox: ['pending'], outbox: [] })
    await clock.advance(2 * HOUR_MS)
    await expect.poll(() => states(made)).toEqual({ inbox: ['dead'], outbox: [] })
  })
})

test('a parser that fails yields the reason and no error', async () => {
  const row = { channel: 'x', account: 'our-number', messageId: 'm1', receivedAtMs: 1, raw: Buffer.from('not JSON'), message: null }
  const channel = { ...(await bench({ channel: CHANNEL })).channel }
  expect(await readMessage(channel, row)).toEqual({ unreadable: expect.stringContaining('x cannot parse the request') })
  expect(await readMessage(undefined, row)).toEqual({ unreadable: 'the channel x is not there to parse the request' })
  expect(await readMessage(channel, { ...row, raw: null })).toEqual({ unreadable: 'the content of the message is no longer kept' })
})

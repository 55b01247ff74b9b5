import { type ClientShares, NO_SHARES } from '@sluice/config'
import { afterEach, describe, expect, test } from 'vitest'
import {
  bench,
  clock,
  type DeliveryBench,
  type DeliveryBenchOptions,
  host,
  message,
  settle,
  setUpDeliveries,
  states,
} from '../testing/delivery-bench.ts'

setUpDeliveries()

/** Ends every turn that a test has left open. */
const endAll: (() => void)[] = []
afterEach(() => {
  for (const end of endAll.splice(0)) end()
})

const HOUR_MS = 3_600_000
const ADA = '+15550002222'
const BOB = '+15550003333'
/** A message of a sender in a conversation of its own. */
const inRoom = (id: string, sender = ADA) => message(id, { sender, to: { to: `room-${id}` } })

/** A bench whose turns end when the test says so, and whose senders have these shares. */
async function sharing(shares: Partial<ClientShares>, options: DeliveryBenchOptions = {}) {
  const turns = new Map<string, PromiseWithResolvers<string>>()
  let isEnding = false
  endAll.push(() => {
    isEnding = true
    for (const { resolve } of turns.values()) resolve('')
  })
  const made = await bench({
    sharesOf: () => ({ ...NO_SHARES, ...shares }),
    turn({ text }) {
      const turn = Promise.withResolvers<string>()
      turns.set(text, turn)
      if (isEnding) turn.resolve('')
      return turn.promise
    },
    ...options,
  })
  const begun = (): string[] => made.turns.map(({ text }) => text.replace('text of ', ''))
  const end = async (id: string): Promise<void> => {
    turns.get(`text of ${id}`)?.resolve(`re: ${id}`)
    await settle()
  }
  return { ...made, begun, end }
}

const limited = async ({ store }: DeliveryBench): Promise<string[]> =>
  (await store.inbox.list({ limit: 99, state: 'limited' })).map(({ messageId }) => messageId).toReversed()

describe('the turns of a sender that run', () => {
  test('are at most its share, while other senders of the account begin', async () => {
    const made = await sharing({ turnsRunning: 2 })
    for (const id of ['a1', 'a2', 'a3', 'a4']) await made.receive(inRoom(id))
    await made.receive(inRoom('b1', BOB))
    await settle()
    expect(made.begun()).toEqual(['a1', 'a2', 'b1'])
    await made.end('a2')
    expect(made.begun().at(-1)).toBe('a3')
  })

  test('do not make the account refuse messages because some wait for the share', async () => {
    const made = await sharing({ turnsRunning: 1 }, { config: { max_queue_secs: 10 } })
    for (const id of ['a1', 'a2']) await made.receive(inRoom(id))
    await settle()
    await clock.advance(60_000)
    await made.receive(inRoom('b1', BOB))
    await settle()
    expect(made.begun()).toEqual(['a1', 'b1'])
  })
})

describe('a message beyond the share of waiting turns', () => {
  test('is kept and ends as limited, with one notice an hour', async () => {
    const made = await sharing({ turnsRunning: 1, turnsWaiting: 2 })
    const receptions = []
    for (const id of ['a1', 'a2', 'a3', 'a4', 'a5']) receptions.push(await made.receive(inRoom(id)))
    await made.receive(inRoom('b1', BOB))
    await settle()
    expect(receptions.map(({ kept }) => kept)).toEqual([1, 1, 1, 1, 1])
    expect(await limited(made)).toEqual(['a4', 'a5'])
    const [row] = await made.store.inbox.list({ limit: 1, state: 'limited' })
    expect(row?.error).toMatch(/^turns_waiting: Too many of your messages are waiting/)
    expect(made.sent.map(({ to, text }) => [to, text])).toEqual([
      [{ to: 'room-a4' }, expect.stringContaining('Too many of your messages are waiting')],
    ])
    const event = { type: 'limit_reached', limit: 'turns_waiting', value: 2, client: 'channel:x/our-number/%2B15550002222' }
    expect(host.emitted.filter(({ type }) => type === 'limit_reached')).toMatchObject([event])
    expect((await made.store.admissions.list(clock.nowMs(), 9)).map(({ cause }) => cause)).toEqual(['turns_waiting'])
    expect(made.begun()).toEqual(['a1', 'b1'])
    await made.end('a1')
    await made.receive(inRoom('a6'))
    await settle()
    expect(await limited(made)).toEqual(['a4', 'a5'])
    for (const id of ['a2', 'a3', 'a6']) await made.end(id)
    expect(made.begun()).toEqual(['a1', 'b1', 'a2', 'a3', 'a6'])
    await clock.advance(HOUR_MS)
    for (const id of ['a7', 'a8', 'a9', 'a10']) await made.receive(inRoom(id))
    await settle()
    expect(await limited(made)).toEqual(['a4', 'a5', 'a10'])
    expect(made.sent.filter(({ text }) => text.startsWith('Too many'))).toHaveLength(2)
  })

  test('is one with more text than may wait', async () => {
    const made = await sharing({ turnsRunning: 1, waitingBytes: 25 })
    for (const id of ['a1', 'a2', 'a3', 'a4']) await made.receive(inRoom(id))
    await settle()
    expect(await limited(made)).toEqual(['a4'])
  })

  test('is one for which all strangers together have no room', async () => {
    const pool = { key: 'strangers', turnsWaiting: 1, attachmentBytes: 1 }
    const made = await sharing({ turnsRunning: 1, pool })
    for (const id of ['a1', 'a2', 'a3']) await made.receive(inRoom(id))
    await made.receive(inRoom('b1', BOB))
    await made.receive(inRoom('b2', BOB))
    await settle()
    expect(await limited(made)).toEqual(['a3', 'b1', 'b2'])
    expect(made.begun()).toEqual(['a1'])
  })

  test('is never one that a restart finds or an operator replays, nor a command', async () => {
    const made = await sharing({ turnsRunning: 1, turnsWaiting: 1 })
    for (const id of ['a1', 'a2', 'a3']) await made.receive(inRoom(id))
    await made.receive(message('stop', { to: { to: 'room-a1' }, text: '/status' }))
    await settle()
    expect(await limited(made)).toEqual(['a3'])
    expect(made.sent.at(-1)?.text).toContain('has been at work')
    const [row] = await made.store.inbox.list({ limit: 1, state: 'limited' })
    await made.store.inbox.replay(row?.number ?? 0)
    made.deliveries.wake()
    await settle()
    await made.end('a1')
    await made.end('a2')
    await made.end('a3')
    expect(await states(made)).toMatchObject({ inbox: ['done', 'done', 'done', 'done'] })
  })

  test('is not counted twice when it waits for another limit', async () => {
    const made = await sharing(
      { turnsWaiting: 2 },
      { limitsOf: ({ client }) => [{ key: client, turnsPerHour: 0, turnsInFlight: 1, usdPerDay: 0 }] },
    )
    for (const id of ['a1', 'a2', 'a3']) {
      await made.receive(inRoom(id))
      await settle()
    }
    expect(made.begun()).toEqual(['a1'])
    await made.receive(inRoom('a4'))
    await settle()
    expect(await limited(made)).toEqual(['a4'])
  })
})

import type { CountedLimits } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import {
  bench,
  clock,
  type DeliveryBench,
  host,
  message,
  open,
  running,
  settle,
  setUpDeliveries,
  states,
} from '../testing/delivery-bench.ts'
import { clientOf } from './admit-message.ts'

setUpDeliveries()

const HOUR_MS = 3_600_000
const none = { turnsPerHour: 0, turnsInFlight: 0, usdPerDay: 0 }
const limitsOf =
  (part: Partial<CountedLimits>, pool?: Partial<CountedLimits>) =>
  ({ client }: { client: string }): CountedLimits[] => [
    { key: client, ...none, ...part },
    ...(pool ? [{ key: 'strangers', ...none, ...pool }] : []),
  ]
const texts = ({ sent }: DeliveryBench): string[] => sent.map(({ text }) => text)
const other = { sender: '+15550003333', to: { to: '+15550003333' } }

describe('turns_per_hour', () => {
  test('refuses further messages with one notice an hour and no turn', async () => {
    const made = await bench({ limitsOf: limitsOf({ turnsPerHour: 2 }) })
    await made.receive(message('m1'), message('m2'), message('m3'), message('m4'), message('m5', other))
    await settle()
    expect(made.turns.map(({ text }) => text).toSorted()).toEqual(['text of m1', 'text of m2', 'text of m5'])
    const notices = texts(made).filter((text) =>
      text.startsWith('You have reached the limit for messages: 2 an hour. You can write again at'),
    )
    expect(notices).toHaveLength(1)
    const rows = (await made.store.inbox.list({ limit: 9, state: 'limited' })).map(({ messageId, error }) => [messageId, error])
    expect(rows).toEqual([
      ['m4', expect.stringMatching(/^turns_per_hour: You have reached/)],
      ['m3', expect.stringMatching(/^turns_per_hour: You have reached/)],
    ])
    expect(host.emitted.filter(({ type }) => type === 'limit_reached')).toHaveLength(1)
    await clock.advance(HOUR_MS)
    await made.receive(message('m6'))
    await settle()
    expect(made.turns.at(-1)?.text).toBe('text of m6')
  })

  test('holds after a restart, and a replay by an operator overrides it', async () => {
    const options = { limitsOf: limitsOf({ turnsPerHour: 1 }) }
    const first = await bench({ ...options })
    await first.receive(message('m1'))
    await settle()
    await running.splice(0)[0]?.stop(0)
    const second = await bench({ ...options, store: open() })
    await second.receive(message('m2'))
    await settle()
    expect(await states(second)).toMatchObject({ inbox: ['limited', 'done'] })
    const [row] = await second.store.inbox.list({ limit: 1 })
    await second.store.inbox.replay(row?.number ?? 0)
    second.deliveries.wake()
    await settle()
    expect(await states(second)).toMatchObject({ inbox: ['done', 'done'] })
  })

  test.each([
    ['of the sender', limitsOf({ turnsPerHour: 1 })],
    ['of the pool', limitsOf({}, { turnsPerHour: 1 })],
  ])('%s holds for /retry too', async (_, limits) => {
    const made = await bench({ limitsOf: limits })
    await made.receive(message('m1'))
    await settle()
    await made.receive(message('m2'))
    await settle()
    await clock.advance(1000)
    await made.receive(message('c1', { text: '/retry' }))
    await settle()
    expect(made.turns.map(({ text }) => text)).toEqual(['text of m1'])
    expect((await states(made)).inbox).toEqual(['limited', 'limited', 'done'])
    await clock.advance(HOUR_MS)
    await made.receive(message('c2', { text: '/retry' }))
    await settle()
    expect(made.turns.map(({ text }) => text)).toEqual(['text of m1', 'text of m1'])
    await made.receive(message('m3'))
    await settle()
    expect(made.turns).toHaveLength(2)
  })

  test('of turns at once is free again after /retry', async () => {
    const made = await bench({ limitsOf: limitsOf({ turnsInFlight: 1 }) })
    for (const text of ['m1', '/retry', '/retry', 'm2']) {
      await made.receive(message(`${text}-${made.sent.length}`, { text }))
      await settle()
      await clock.advance(1000)
      await settle()
    }
    expect(made.turns.map(({ text }) => text)).toEqual(['m1', 'm1', 'm1', 'm2'])
  })

  test('counts a retried message once', async () => {
    let fails = true
    const made = await bench({
      limitsOf: limitsOf({ turnsPerHour: 1 }),
      turn({ text }) {
        if (fails) throw new Error('broken')
        return text
      },
    })
    await made.receive(message('m1'))
    await settle()
    fails = false
    await clock.advance(600_000)
    await settle()
    expect(await states(made)).toMatchObject({ inbox: ['done'] })
    expect(made.turns.length).toBeGreaterThan(1)
  })
})

test('turns_in_flight makes messages of a client wait, but no messages of others', async () => {
  const gate = Promise.withResolvers<void>()
  const made = await bench({
    limitsOf: limitsOf({ turnsInFlight: 1 }),
    async turn({ text }) {
      if (text === 'text of m1') await gate.promise
      return text
    },
  })
  await made.receive(message('m1'), message('m2', { to: { to: 'a room' } }), message('m3', other))
  await settle()
  expect(made.turns.map(({ text }) => text)).toEqual(['text of m1', 'text of m3'])
  await clock.advance(60_000)
  await settle()
  expect(made.turns).toHaveLength(2)
  gate.resolve()
  await settle()
  await clock.advance(2000)
  await settle()
  expect(made.turns.map(({ text }) => text)).toEqual(['text of m1', 'text of m3', 'text of m2'])
  expect(await states(made)).toMatchObject({ inbox: ['done', 'done', 'done'] })
})

test('usd_per_day refuses messages until the day ends', async () => {
  const made = await bench({ limitsOf: limitsOf({ usdPerDay: 1 }) })
  await made.receive(message('m1'))
  await settle()
  const client = clientOf({ name: 'x', allow: ['*'] } as never, message('m1'), []).client
  await made.store.admissions.spend([client], 1, clock.nowMs())
  await made.receive(message('m2'), message('m3'))
  await settle()
  expect(made.turns).toHaveLength(1)
  expect(texts(made).filter((text) => text.startsWith('You have reached the limit of 1 USD a day'))).toHaveLength(1)
})

test('1,000 strangers run no more turns than their pool, and only the ones that were served get a notice', async () => {
  const made = await bench({ limitsOf: limitsOf({ turnsPerHour: 2 }, { turnsPerHour: 5 }) })
  for (let from = 0; from < 1000; from += 100) {
    const ids = Array.from({ length: 100 }, (_, index) => from + index)
    await made.receive(...ids.map((id) => message(`m${id}`, { sender: `s${id}`, to: { to: `s${id}` } })))
    await settle()
  }
  expect(made.turns).toHaveLength(5)
  expect(made.sent).toHaveLength(5)
  await made.receive(message('again', { sender: 's0', to: { to: 's0' } }), message('more', { sender: 's0', to: { to: 's0' } }))
  await settle()
  expect(texts(made).slice(5)).toEqual([expect.stringMatching(/^Guests have together reached the limit for messages: 5 an hour/)])
  expect(host.emitted.filter(({ type }) => type === 'limit_reached')).toMatchObject([{ client: 'strangers' }])
})

test.each([
  ['stranger', ['*'], {}],
  ['listed', ['*', '+15550002222'], {}],
  ['listed', ['+15550002222'], {}],
  ['operator', ['+15550002222', '+15550001111'], {}],
  ['stranger', ['+15550001111'], {}],
  ['unverified', ['+15550002222'], { message: { unverified: true } }],
  ['unverified', ['+15550002222', '+15550001111'], { channel: { webhook: { unsigned: 'secret' } } }],
] as const)(
  'a sender is %s of the allowlist %j and %j',
  (standing, allow, { channel = {}, message: more = {} }: { channel?: object; message?: object }) => {
    const operators = allow.length === 2 && allow[0] !== '*' ? ['+1 555 000 2222'] : []
    const normalise = (sender: string) => sender.replaceAll(' ', '')
    const given = { name: 'x', allow, normalise, ...channel } as never
    expect(clientOf(given, { ...message('m1'), ...more }, operators).standing).toBe(standing)
  },
)

describe('the breaker of loops', () => {
  /** Sends messages that each come this long after the answer to the one before. */
  async function converse(made: DeliveryBench, prefix: string, count: number, afterMs: number): Promise<void> {
    for (let index = 0; index < count; index++) {
      await clock.advance(afterMs)
      await made.receive(message(`${prefix}${index}`))
      await settle()
    }
  }

  test('pauses a conversation whose messages each come right after an answer', async () => {
    const made = await bench({ loopTurns: 3 })
    await converse(made, 'a', 6, 2000)
    expect(made.turns.map(({ text }) => text)).toEqual(['text of a0', 'text of a1', 'text of a2'])
    expect(made.sent).toHaveLength(3)
    expect(host.emitted.filter(({ type }) => type === 'loop_stopped')).toMatchObject([{ sender: '+15550002222', channel: 'x' }])
    expect(await states(made)).toMatchObject({ inbox: ['limited', 'limited', 'limited', 'done', 'done', 'done'] })
    await made.receive(message('b', other))
    await settle()
    expect(made.turns.at(-1)?.text).toBe('text of b')
  })

  const isPaused = (bot: string | undefined) => host.emitted.some((one) => one.type === 'loop_stopped' && one.sender === bot)
  const inRoom = (id: string, sender: string) => message(id, { sender, to: { to: 'room' }, addressed: 'mention' })

  test('pauses in a shared room only the writer whose messages come right after answers', async () => {
    const made = await bench({ loopTurns: 3 })
    const [bot, person] = ['+15550002222', '+15550003333']
    for (let index = 0; index < 6; index++) {
      await clock.advance(4000)
      await made.receive(inRoom(`bot${index}`, bot))
      await settle()
      if (index % 2 === 1) continue
      await clock.advance(4000)
      await made.receive(inRoom(`person${index}`, person))
      await settle()
    }
    const begun = made.turns.map(({ text }) => /(?:bot|person)\d/.exec(text)?.[0])
    expect(begun).toEqual(['bot0', 'person0', 'bot1', 'bot2', 'person2', 'person4'])
    const [held, ...others] = await made.store.admissions.list(clock.nowMs(), 9)
    expect(others).toEqual([])
    expect(held?.client).toMatch(/room\/%2B15550002222$/)
    expect(host.emitted.filter(({ type }) => type === 'loop_stopped')).toMatchObject([{ sender: bot, held: held?.client }])
  })

  test.each([2, 3, 5])('ends a loop of %i programs that take turns in a shared room, and answers the others', async (count) => {
    const made = await bench({ loopTurns: 3 })
    const bots = Array.from({ length: count }, (_, index) => `+1555000222${index}`)
    for (let index = 0; index === made.turns.length && index < 40; index++) {
      await clock.advance(9000)
      await made.receive(inRoom(`m${index}`, bots[index % bots.length] ?? ''))
      await settle()
    }
    // The first message follows no answer.
    expect(made.turns).toHaveLength(2 * count + 1)
    expect(host.emitted.filter(({ type }) => type === 'loop_stopped')).toMatchObject([{ sender: bots[1] }])
    await made.receive(inRoom('person', '+15550004444'))
    await settle()
    expect(made.turns).toHaveLength(2 * count + 2)
  })

  test('counts on for the programs that go on after one of them is paused', async () => {
    const made = await bench({ loopTurns: 3 })
    const bots = ['+15550002220', '+15550002221', '+15550002222']
    // A program that gets no answer writes no more.
    for (let index = 0; index < 60; index++) {
      const bot = bots[index % bots.length] ?? ''
      if (isPaused(bot)) continue
      await clock.advance(4000)
      await made.receive(inRoom(`m${index}`, bot))
      await settle()
    }
    expect(bots.filter(isPaused)).toEqual(bots)
    expect(made.turns.length).toBeLessThanOrEqual(10)
  })

  test.each([
    ['one', 1, 5000],
    ['several', 3, 9000],
  ])('pauses %s of the programs that take turns with a slow one', async (_name, count, afterMs) => {
    const made = await bench({ loopTurns: 3 })
    const bots = Array.from({ length: count }, (_, index) => `+1555000222${index}`)
    for (let index = 0; index < 40; index++) {
      const bot = bots[index % (count + 1)]
      if (isPaused(bot)) continue
      await clock.advance(bot === undefined ? 12_000 : afterMs)
      await made.receive(inRoom(`m${index}`, bot ?? '+15550004444'))
      await settle()
    }
    expect(bots.filter(isPaused)).toEqual(bots)
    expect(isPaused('+15550004444')).toBe(false)
  })

  test('leaves the people of a busy room alone, of whom one now and then takes longer', async () => {
    const made = await bench({ loopTurns: 3 })
    const people = ['+15550002222', '+15550003333', '+15550004444']
    for (let index = 0; index < 45; index++) {
      await clock.advance(index % 6 === 5 ? 11_000 : 4000)
      await made.receive(inRoom(`m${index}`, people[index % people.length] ?? ''))
      await settle()
    }
    expect(made.turns).toHaveLength(45)
    expect(host.emitted.filter(({ type }) => type === 'loop_stopped')).toEqual([])
  })

  test('pauses the writer of a shared room also after a message that a limit refused', async () => {
    let turnsPerHour = 1
    const made = await bench({ loopTurns: 3, limitsOf: ({ client }) => [{ key: client, ...none, turnsPerHour }] })
    const write = async (prefix: string, count: number) => {
      for (let index = 0; index < count; index++) {
        await clock.advance(2000)
        await made.receive(inRoom(`${prefix}${index}`, '+15550002222'))
        await settle()
      }
    }
    await write('refused', 4)
    expect(made.turns).toHaveLength(1)
    expect(await made.store.admissions.list(clock.nowMs(), 9)).toMatchObject([{ cause: 'turns_per_hour' }])
    await clock.advance(HOUR_MS)
    turnsPerHour = 0
    await write('loop', 8)
    // The first of the refused messages was quick too.
    expect(made.turns).toHaveLength(1 + 2)
    expect(await made.store.admissions.list(clock.nowMs(), 9)).toMatchObject([{ cause: 'loop' }])
  })

  test('stays open over a restart and ends after an hour or a reset', async () => {
    const first = await bench({ loopTurns: 3 })
    await converse(first, 'a', 4, 2000)
    await running.splice(0)[0]?.stop(0)
    const made = await bench({ loopTurns: 3, store: open() })
    await converse(made, 'b', 1, 60_000)
    expect(made.turns).toHaveLength(0)
    const [held] = await made.store.admissions.list(clock.nowMs(), 9)
    expect(held).toMatchObject({ cause: 'loop' })
    await made.store.admissions.reset(held?.client ?? '')
    await converse(made, 'c', 1, 2000)
    expect(made.turns).toHaveLength(1)
    await converse(made, 'd', 4, 2000)
    await converse(made, 'e', 1, HOUR_MS)
    expect(made.turns.at(-1)?.text).toBe('text of e0')
  })

  test('leaves a person alone who writes again and again after a limit, without an answer', async () => {
    const made = await bench({ loopTurns: 3, limitsOf: limitsOf({ turnsPerHour: 1 }) })
    await converse(made, 'a', 8, 1000)
    expect(made.turns).toHaveLength(1)
    expect(host.emitted.filter(({ type }) => type === 'loop_stopped')).toEqual([])
  })

  test('leaves a person alone who now and then takes longer', async () => {
    const made = await bench({ loopTurns: 3 })
    for (const part of ['a', 'b', 'c', 'd']) {
      await converse(made, `${part}-slow`, 1, 11_000)
      await converse(made, part, 2, 1000)
    }
    expect(made.turns).toHaveLength(12)
  })
})

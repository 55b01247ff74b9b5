/** Catching up: messages written while no connection was open arrive once and in order. */
import type { Inbound } from '@sluice/sdk'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type SlackFake, startSlackFake } from './testing/fake.ts'
import { createTestChannel, soon, type TestChannel, type TestChannelOptions } from './testing/test-channel.ts'

const HOUR_MS = 3_600_000
const START_MS = Date.UTC(2026, 0, 1)
const START_SECS = START_MS / 1000

let fake: SlackFake
let keyValue: ReturnType<typeof memoryKeyValue>
let bots: TestChannel[] = []
beforeEach(async () => {
  fake = await startSlackFake({ ackMs: 60_000 })
  keyValue = memoryKeyValue()
})
afterEach(async () => {
  await Promise.all(bots.map((bot) => bot.stop()))
  bots = []
  await fake.close()
})

async function listening({ config = {}, host = {} }: TestChannelOptions = {}): Promise<TestChannel> {
  const bot = createTestChannel(fake, { config, host: { keyValue, ...host } }).listen()
  bots.push(bot)
  await soon(() => expect(bot.health().state).toBe('ok'))
  return bot
}
const textsOf = ({ received }: TestChannel): string[] => received.map(({ text }: Inbound) => text)
const receives = (bot: TestChannel, ...texts: string[]) => soon(() => expect(textsOf(bot)).toEqual(texts))
const historyReads = () => fake.requests.filter(({ path }) => path.endsWith('conversations.history')).length
/** A clock, and the function that waits until the channel waits `secs` or up to a tenth longer, as it does for a rate limit. */
function observedClock(): { readonly clock: TestClock; readonly waitsFor: (secs: number) => Promise<void> } {
  const clock = testClock(START_MS)
  const waits: number[] = []
  const sleep: TestClock['sleep'] = (ms, signal) => {
    waits.push(ms)
    return clock.sleep(ms, signal)
  }
  const isLimit = (secs: number) => (ms: number) => ms >= secs * 1000 && ms <= secs * 1100
  return {
    clock: Object.create(clock, { sleep: { value: sleep } }) as TestClock,
    waitsFor: (secs) => soon(() => expect(waits.filter(isLimit(secs))).toHaveLength(1)),
  }
}
/** Waits until the stored cursors contain these positions, written as `place=timestamp`. */
const cursorsReach = (...places: string[]) =>
  soon(async () => {
    for (const bot of bots) await bot.host.advance(5000)
    const stored = Object.entries((await keyValue.get('cursors')) as Record<string, { after: string }>)
    expect(stored.map(([place, { after }]) => `${place}=${after}`)).toEqual(expect.arrayContaining(places))
  })

test('a restart reads conversations, known threads and new ones', async () => {
  const before = await listening()
  const known = fake.say({ text: 'known' })
  const { id: asked } = await before.channel.send({ to: 'C2' }, { text: 'Deploy?', clientId: 'c' }, new AbortController().signal)
  await before.channel.send({ to: 'C1', thread: known }, { text: 'an answer', clientId: 'c' }, new AbortController().signal)
  await receives(before, 'known')
  await cursorsReach(`C1=${known}`, `C1/${known}=${known}`, `C2/${asked}=${asked}`)
  await before.stop()

  fake.say({ text: 'in a known thread', thread: known, isLost: true })
  const fresh = fake.say({ text: 'a new one', isLost: true })
  fake.say({ text: 'in its thread', thread: fresh, isLost: true })
  const approval = fake.say({ text: 'approve', channel: 'C2', thread: asked, isLost: true })
  const after = await listening()
  await soon(() => expect(textsOf(after).toSorted()).toEqual(['a new one', 'approve', 'in a known thread', 'in its thread']))
  expect(after.received.find(({ text }) => text === 'approve')).toMatchObject({ id: `C2:${approval}`, to: { to: 'C2', thread: asked } })

  await cursorsReach(`C1=${fresh}`, `C2/${asked}=${approval}`)
  await after.stop()
  const again = await listening()
  fake.say({ text: 'the end' })
  // The message may arrive twice if it is written during the catch-up.
  await soon(() => expect(new Set(textsOf(again))).toEqual(new Set(['the end'])))
})

test('a restart finds the edits of messages that are stored, and of messages that it does not know to be stored', async () => {
  const before = await listening()
  const known = fake.say({ text: 'known' })
  await before.channel.send({ to: 'C1', thread: known }, { text: 'an answer', clientId: 'c' }, new AbortController().signal)
  const reply = fake.say({ text: 'a reply', thread: known })
  await receives(before, 'known', 'a reply')
  await cursorsReach(`C1=${known}`, `C1/${known}=${reply}`)
  await before.stop()

  fake.edit('C1', known, { user: 'UADA', text: 'known, edited', isLost: true })
  fake.edit('C1', reply, { user: 'UADA', text: 'a reply, edited', isLost: true })
  const missed = fake.say({ text: 'missed', isLost: true })
  fake.edit('C1', missed, { user: 'UADA', text: 'missed, edited', isLost: true })
  const after = await listening()
  await soon(() => expect(textsOf(after).toSorted()).toEqual(['a reply, edited', 'known, edited', 'missed, edited', 'missed, edited']))
  const targets = after.received.map(({ id, changes }) => changes?.message ?? id)
  expect(targets.toSorted()).toEqual([`C1:${known}`, `C1:${reply}`, `C1:${missed}`, `C1:${missed}`])
})

test('edits are found in the last 100 messages of a thread, after the missed messages of all places', async () => {
  const before = await listening()
  const root = fake.say({ text: 'root' })
  await before.channel.send({ to: 'C1', thread: root }, { text: 'an answer', clientId: 'c' }, new AbortController().signal)
  const replies = Array.from({ length: 130 }, (_, at) => fake.say({ text: `reply ${at}`, thread: root }))
  await soon(() => expect(before.received).toHaveLength(131))
  await cursorsReach(`C1=${root}`, `C1/${root}=${replies.at(-1)}`)
  await before.stop()

  fake.edit('C1', replies[5] ?? '', { user: 'UADA', text: 'too early, edited', isLost: true })
  fake.edit('C1', replies[125] ?? '', { user: 'UADA', text: 'reply 125, edited', isLost: true })
  fake.edit('C1', root, { user: 'UADA', text: 'root, edited', isLost: true })
  fake.say({ text: 'missed', isLost: true })
  fake.say({ text: 'missed in the thread', thread: root, isLost: true })
  await receives(await listening(), 'missed', 'missed in the thread', 'root, edited', 'reply 125, edited')
})

test('a configured conversation loses not even its first message', async () => {
  const first = await listening({ config: { channel_ids: ['C2'] } })
  await cursorsReach(`C2=${START_SECS}.000000`)
  await first.stop()
  fake.say({ text: 'first', channel: 'C2', isLost: true })
  await receives(await listening({ config: { channel_ids: ['C2'] } }), 'first')
})

test('a message that is not durable moves no cursor', async () => {
  const bot = await listening()
  const kept = fake.say({ text: 'kept' })
  await receives(bot, 'kept')
  await cursorsReach(`C1=${kept}`)
  bot.storeWith(() => new Promise(() => undefined))
  fake.say({ text: 'not kept' })
  await soon(() => expect(fake.socket.delivered.length).toBeGreaterThan(1))
  await bot.stop()
  const after = await listening()
  await soon(() => expect(new Set(textsOf(after))).toEqual(new Set(['not kept'])))
})

test('a slow message holds back the cursor although a later one is durable', async () => {
  const bot = await listening()
  const first = fake.say({ text: 'first' })
  await receives(bot, 'first')
  await cursorsReach(`C1=${first}`)
  const slow = Promise.withResolvers<void>()
  bot.storeWith(({ text }) => (text === 'slow' ? slow.promise : Promise.resolve()))
  fake.say({ text: 'slow' })
  const quick = fake.say({ text: 'quick' })
  await receives(bot, 'first', 'quick')
  await cursorsReach(`C1=${first}`)
  slow.resolve()
  await cursorsReach(`C1=${quick}`)
})

describe('messages more than an hour old', () => {
  test('are skipped, and reported with their conversations', async () => {
    const before = await listening()
    const known = fake.say({ text: 'known' })
    await before.channel.send({ to: 'C1', thread: known }, { text: 'an answer', clientId: 'c' }, new AbortController().signal)
    await receives(before, 'known')
    await cursorsReach(`C1=${known}`, `C1/${known}=${known}`)
    await before.stop()
    fake.say({ text: 'too old', isLost: true, atSecs: START_SECS + 60 })
    fake.say({ text: 'too old, in a thread', thread: known, isLost: true, atSecs: START_SECS + 61 })
    fake.say({ text: 'recent', isLost: true, atSecs: START_SECS + 7000 })
    const after = await listening({ host: { clock: testClock(START_MS + 2 * HOUR_MS) } })
    await receives(after, 'recent')
    await soon(() =>
      expect(after.gaps).toMatchObject([
        { why: expect.stringMatching(/C1 are more than an hour old/) },
        { why: expect.stringContaining(known) },
      ]),
    )
  })

  test('are reported only if messages were skipped', async () => {
    const before = await listening()
    const known = fake.say({ text: 'known' })
    await receives(before, 'known')
    await cursorsReach(`C1=${known}`)
    await before.stop()
    const after = await listening({ host: { clock: testClock(START_MS + 2 * HOUR_MS) } })
    // A message written during the catch-up may arrive twice: once from the history and once over the connection.
    await soon(() => expect(historyReads()).toBe(3))
    const live = fake.say({ text: 'live', atSecs: START_SECS + 7300 })
    await receives(after, 'live')
    await cursorsReach(`C1=${live}`)
    expect(after.host.logs).toEqual([])
  })
})

test('missed messages are read over several pages, oldest first', async () => {
  const before = await listening()
  const known = fake.say({ text: 'known' })
  await receives(before, 'known')
  await cursorsReach(`C1=${known}`)
  await before.stop()
  const texts = Array.from({ length: 250 }, (_, index) => `message ${index}`)
  for (const text of texts) fake.say({ text, isLost: true })
  await receives(await listening(), ...texts)
})

test('a rate limit delays reading as long as Slack asks', async () => {
  const before = await listening()
  const known = fake.say({ text: 'known' })
  await receives(before, 'known')
  await cursorsReach(`C1=${known}`)
  await before.stop()
  fake.say({ text: 'lost', isLost: true })
  const limited = { fault: 'status', status: 429, headers: { 'retry-after': '30' }, body: { ok: false, error: 'ratelimited' } } as const
  fake.fail(limited, { matches: ({ path }) => path.endsWith('conversations.history') })
  const { clock, waitsFor } = observedClock()
  const after = await listening({ host: { clock } })
  await waitsFor(30)
  await after.host.advance(29_000)
  expect([historyReads(), textsOf(after)]).toEqual([1, []])
  await after.host.advance(4000)
  await receives(after, 'lost')
  expect(historyReads()).toBe(3)
})

test('a conversation with a new message is read before the others', async () => {
  const before = await listening()
  for (const channel of ['C1', 'C2', 'D1']) fake.say({ text: `known ${channel}`, channel })
  await receives(before, 'known C1', 'known C2', 'known D1')
  await before.stop()
  for (const channel of ['C1', 'C2', 'D1']) fake.say({ text: `missed ${channel}`, channel, isLost: true })
  const limited = { fault: 'status', status: 429, headers: { 'retry-after': '1' }, body: { ok: false, error: 'ratelimited' } } as const
  fake.fail(limited, { matches: ({ path }) => path.endsWith('conversations.history') })
  const { clock, waitsFor } = observedClock()
  const after = await listening({ host: { clock } })
  await waitsFor(1)
  await after.host.advance(10)
  const eventsBefore = after.health().lastEventAtMs
  fake.say({ text: 'new', channel: 'D1' })
  await soon(() => expect(after.health().lastEventAtMs).not.toBe(eventsBefore))
  // Longer than Slack asks, and shorter than new messages wait for missed ones.
  await after.host.advance(1200)
  await soon(() => expect(textsOf(after).filter((text) => text.startsWith('missed'))).toEqual(['missed C1', 'missed D1', 'missed C2']))
  await soon(() => expect(textsOf(after)).toContain('new'))
  expect(textsOf(after).indexOf('new')).toBeGreaterThan(textsOf(after).indexOf('missed D1'))
})

test('a conversation that can no longer be read is forgotten', async () => {
  await keyValue.set('cursors', { channels: { CGONE: '1767225600.000100', C1: '1767225600.000100' }, threads: { odd: 7 } })
  fake.say({ text: 'lost', isLost: true })
  const bot = await listening()
  await receives(bot, 'lost')
  await bot.stop()
  expect(JSON.stringify(await keyValue.get('cursors'))).not.toContain('CGONE')
  expect(bot.host.logs).toContainEqual(expect.objectContaining({ fields: expect.objectContaining({ channel: 'CGONE' }) }))
})

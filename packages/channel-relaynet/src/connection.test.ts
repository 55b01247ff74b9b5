/** Receiving from fake relays. */

import { AppError } from '@sluice/sdk'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { npubEncode } from 'nostr-tools/nip19'
import { createRumor, createSeal, createWrap } from 'nostr-tools/nip59'
import { afterEach, describe, expect, test } from 'vitest'
import { type ChannelOptions, type RunningChannel, runChannel } from './testing/bench.ts'
import { pubkeyOf, type RelaynetFake, type RelaynetFakeOptions, secretKeyOfPerson, startRelaynetFake, write } from './testing/index.ts'

/** The time at which the clock of a test host begins. */
const START_MS = Date.UTC(2026, 0, 1)
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})
async function relay(options: RelaynetFakeOptions = {}): Promise<RelaynetFake> {
  const fake = await startRelaynetFake({ nowMs: () => START_MS, ...options })
  closing.push(() => fake.close())
  return fake
}
function run(fakes: readonly RelaynetFake[], options: ChannelOptions = {}): RunningChannel {
  const running = runChannel(fakes, options)
  closing.push(() => running.stop())
  return running
}
const isUp = ({ listening }: RunningChannel) => expect.poll(() => listening.health.state).toBe('ok')
/** Positions as an earlier run has stored them. */
function readUntil(atMs: number, ...fakes: readonly RelaynetFake[]) {
  const keyValue = memoryKeyValue()
  const [after, begin] = [String(atMs), String(START_MS - 400 * DAY_MS)]
  void keyValue.set('positions', Object.fromEntries(fakes.map(({ relayUrl }) => [relayUrl, { after, begin }])))
  return keyValue
}
/** A private message in a gift wrap of a chosen time. */
function wrapAt(text: string, atMs: number, wrapAtMs: number) {
  const [ada, bot] = [secretKeyOfPerson('ada'), pubkeyOf('bot')]
  const rumor = createRumor({ kind: 14, created_at: Math.floor(atMs / 1000), tags: [['p', bot]], content: text }, ada)
  const { now } = Date
  Date.now = () => wrapAtMs
  const { random } = Math
  Math.random = () => 0
  try {
    return createWrap(createSeal(rumor, ada, bot), bot)
  } finally {
    Math.random = random
    Date.now = now
  }
}

describe('messages', () => {
  test('of both protocols arrive, and name the protocol for the reply', async () => {
    const fake = await relay()
    const running = run([fake])
    await isUp(running)
    const ids = [fake.say({ text: 'one' }), fake.say({ text: 'two', protocol: 'nip04', from: 'bob' })]
    await expect.poll(() => running.texts).toEqual(['one', 'two'])
    const [ada, bob, account] = ['ada', 'bob', 'bot'].map(pubkeyOf)
    expect(running.received).toMatchObject([
      { id: ids[0], account, sender: ada, to: { to: ada, replyTo: ids[0] } },
      { id: ids[1], account, sender: bob, to: { to: bob, replyTo: ids[1], more: { protocol: 'nip04' } } },
    ])
    expect(running.received[0]?.to.more).toBeUndefined()
  })

  test('name the message that they answer', async () => {
    const fake = await relay()
    const running = run([fake])
    await isUp(running)
    const [first, second] = ['1', '2'].map((digit) => digit.repeat(64)) as [string, string]
    fake.say({ text: 'to the first', tags: [['e', first]] })
    fake.say({
      text: 'to the marked',
      tags: [
        ['e', first, '', 'root'],
        ['e', second, '', 'reply'],
      ],
    })
    fake.say({ text: 'to none', tags: [['e', 'not an id']] })
    await expect.poll(() => running.texts.length).toBe(3)
    expect(running.received.map(({ inReplyTo }) => inReplyTo)).toEqual([first, second, undefined])
  })

  test('of several members are one conversation for every writer', async () => {
    const fake = await relay()
    const running = run([fake])
    await isUp(running)
    fake.say({ text: 'from ada', from: 'ada', others: ['bob'] })
    fake.say({ text: 'from bob', from: 'bob', others: ['ada'] })
    fake.say({ text: `nostr:${npubEncode(pubkeyOf('bot'))} and you?`, from: 'bob', others: ['ada'] })
    fake.say({ text: 'too many', others: Array.from({ length: 20 }, (_, index) => `member ${index}`) })
    fake.say({ text: 'alone' })
    await expect.poll(() => running.texts).toEqual(['from ada', 'from bob', expect.stringContaining('and you?'), 'alone'])
    const room = ['ada', 'bob'].map(pubkeyOf).toSorted().join(',')
    expect(running.received.map(({ to }) => to.to)).toEqual([room, room, room, pubkeyOf('ada')])
    expect(running.received.map(({ addressed }) => addressed)).toEqual(['overheard', 'overheard', 'mention', 'direct'])
  })

  test('that a sender deletes are reported as changes', async () => {
    const fake = await relay()
    const running = run([fake])
    await isUp(running)
    const message = fake.say({ text: 'oops' })
    const id = fake.say({
      text: '',
      kind: 5,
      tags: [
        ['e', message],
        ['e', 'not an id'],
      ],
    })
    await expect.poll(() => running.received.length).toBe(2)
    expect(running.received[1]).toMatchObject({
      id: `${id}:${message}`,
      sender: pubkeyOf('ada'),
      text: '',
      changes: { message, what: 'deleted' },
    })
  })

  test('of the bot, reactions, empty and unreadable ones are ignored', async () => {
    const fake = await relay()
    const running = run([fake])
    await isUp(running)
    for (const protocol of ['nip17', 'nip04'] as const) fake.say({ text: 'from another client', from: 'bot', protocol })
    fake.say({ text: '+', kind: 7 })
    fake.say({ text: ' \n' })
    fake.publish({ ...write({ text: 'x', protocol: 'nip04' }).event, content: 'not encrypted' })
    fake.say({ text: 'hello' })
    await expect.poll(() => running.texts).toEqual(['hello'])
  })

  test('with a wrong signature are ignored, and do not hide the right ones', async () => {
    const fake = await relay()
    const running = run([fake])
    await isUp(running)
    const { event } = write({ text: 'right', atMs: START_MS })
    const { event: other } = write({ text: 'forged', from: 'mallory', protocol: 'nip04', atMs: START_MS })
    fake.show({ ...other, id: event.id, kind: 1059, tags: event.tags })
    fake.show({ ...other, pubkey: pubkeyOf('ada') })
    fake.publish(event)
    await expect.poll(() => running.texts).toEqual(['right'])
  })

  test('that have expired are ignored', async () => {
    const fake = await relay()
    const running = run([fake])
    await isUp(running)
    const expires = (ms: number) => [['expiration', String((START_MS + ms) / 1000)]]
    fake.say({ text: 'late', protocol: 'nip04', tags: expires(-1000) })
    fake.say({ text: 'in time', protocol: 'nip04', tags: expires(60_000) })
    await expect.poll(() => running.texts).toEqual(['in time'])
  })
})

describe('stored messages', () => {
  test('are delivered in the order in which they were written, over pages of the relay', async () => {
    const fake = await relay({ limit: 3 })
    const numbers = Array.from({ length: 10 }, (_, index) => index)
    // The times of the gift wraps are in another order.
    for (const number of numbers) {
      const atMs = START_MS - (10 - number) * 60_000
      fake.publish(wrapAt(String(number), atMs, atMs - ((number * 7) % 10) * HOUR_MS))
    }
    const running = run([fake], { host: { keyValue: readUntil(START_MS - HOUR_MS, fake) } })
    await expect.poll(() => running.texts).toEqual(numbers.map(String))
  })

  test('arrive although their gift wraps are two days older than the position', async () => {
    const fake = await relay()
    const atMs = START_MS - HOUR_MS
    fake.publish(wrapAt('hidden', atMs + 1000, atMs - 2 * DAY_MS + 1000))
    const running = run([fake], { host: { keyValue: readUntil(atMs, fake) } })
    await expect.poll(() => running.texts).toEqual(['hidden'])
  })

  test('are not answered when they are older than the bot, or from the far future', async () => {
    const fake = await relay()
    fake.publish(wrapAt('before the bot', START_MS - HOUR_MS, START_MS))
    fake.publish(wrapAt('next week', START_MS + 7 * DAY_MS, START_MS))
    fake.publish(wrapAt('a clock that is slow', START_MS - 60_000, START_MS))
    const running = run([fake])
    await expect.poll(() => running.texts).toEqual(['a clock that is slow'])
    expect(running.host.logs.map(({ message }) => message)).toContain('message ignored, because its time is more than a day in the future')
  })

  test('are delivered once, though relays repeat them and each relay has them', async () => {
    const fakes = await Promise.all([relay({ copies: 3 }), relay({ copies: 2 }), relay()])
    const running = run(fakes)
    await isUp(running)
    await expect.poll(() => fakes.every(({ subscriptions }) => subscriptions > 0)).toBe(true)
    const { event } = write({ text: 'once', atMs: START_MS })
    for (const fake of fakes) fake.publish(event)
    const end = write({ text: 'end', protocol: 'nip04', from: 'bob', atMs: START_MS })
    for (const fake of fakes) fake.publish(end.event)
    await expect.poll(() => running.texts).toEqual(['once', 'end'])
    await running.host.advance(60_000)
    expect(running.texts).toEqual(['once', 'end'])
  })

  test('are delivered once over restarts, also when the inbox has forgotten them', async () => {
    const fake = await relay()
    const keyValue = memoryKeyValue()
    const first = run([fake], { host: { keyValue } })
    await isUp(first)
    fake.say({ text: 'one' })
    fake.say({ text: 'two', protocol: 'nip04' })
    await expect.poll(() => first.texts).toEqual(['one', 'two'])
    await first.stop()
    fake.say({ text: 'three' })
    const second = run([fake], { host: { keyValue } })
    await expect.poll(() => second.texts).toEqual(['three'])
    await isUp(second)
    await second.stop()
    expect(second.texts).toEqual(['three'])
  })

  test('that a relay has lost while the subscription began are asked for once more', async () => {
    const fake = await relay()
    const running = run([fake])
    await isUp(running)
    fake.keep(write({ text: 'lost', atMs: START_MS }).event)
    await running.host.advance(31_000)
    await expect.poll(() => running.texts).toEqual(['lost'])
  })

  test('of a relay that was not read for months are reported as a gap', async () => {
    const fake = await relay()
    const running = run([fake], { host: { keyValue: readUntil(START_MS - 90 * DAY_MS, fake) } })
    await isUp(running)
    expect(running.listening.gaps).toEqual([{ sinceMs: START_MS - 90 * DAY_MS, why: expect.stringContaining('14 days') }])
  })

  test('come again after the store has failed until the channel stopped', async () => {
    const fake = await relay()
    const keyValue = memoryKeyValue()
    const full = () => Promise.reject(new AppError('unavailable', 'the disk is full'))
    const first = run([fake], { host: { keyValue }, deliver: full })
    await isUp(first)
    fake.say({ text: 'one' })
    await expect.poll(() => first.host.logs.some(({ message }) => message.startsWith('message not stored'))).toBe(true)
    await first.stop()
    const second = run([fake], { host: { keyValue } })
    await expect.poll(() => second.texts).toEqual(['one'])
  })

  test('do not fill the memory: reading pauses while many wait', async () => {
    const fake = await relay()
    const running = run([fake])
    await isUp(running)
    // Reading pauses at 200 unread events. Each costs some milliseconds of encryption here, and as many in the fake.
    const numbers = Array.from({ length: 250 }, (_, index) => String(index))
    for (const text of numbers) fake.say({ text, protocol: 'nip04' })
    await expect.poll(() => running.texts).toEqual(numbers)
  })
})

describe('relays', () => {
  test('that ask for authentication get it, and then show private messages', async () => {
    for (const auth of ['required', 'hidden', 'late'] as const) {
      const fake = await relay({ auth })
      const running = run([fake])
      await isUp(running)
      await expect.poll(() => fake.entered).toEqual([pubkeyOf('bot')])
      fake.say({ text: auth })
      await expect.poll(() => running.texts).toEqual([auth])
    }
  })

  test('that do not work leave the channel working, and are tried again', async () => {
    const [good, bad] = [await relay(), await relay()]
    bad.cut({ isDown: true })
    const running = run([good, bad])
    await isUp(running)
    good.say({ text: 'one' })
    await expect.poll(() => running.texts).toEqual(['one'])
    await expect.poll(() => running.host.logs.some(({ message }) => message === 'relay does not work, others are used')).toBe(true)
    bad.say({ text: 'two', protocol: 'nip04' })
    bad.cut()
    await running.host.advance(5000)
    await expect.poll(() => running.texts).toEqual(['one', 'two'])
    expect(running.listening.health.state).toBe('ok')
    expect(running.host.logs.map(({ message }) => message)).toContain('relay works again')
  })

  test('that all fail are named in the health', async () => {
    const fakes = await Promise.all([relay(), relay()])
    for (const fake of fakes) fake.cut({ isDown: true })
    const running = run(fakes)
    await expect.poll(() => running.listening.health.state).toBe('down')
    for (const { relayUrl } of fakes) expect(running.listening.health.detail).toContain(relayUrl)
  })

  test('that limit the rate are left alone for a minute', async () => {
    const fake = await relay()
    const running = run([fake])
    await isUp(running)
    fake.endSubscriptions('rate-limited: too many requests')
    await expect.poll(() => running.listening.retryAtMs).toBeDefined()
    expect((running.listening.retryAtMs ?? 0) - running.host.clock.monotonicMs()).toBeGreaterThanOrEqual(60_000)
  })

  test('that end the subscription are connected again', async () => {
    const fake = await relay()
    const running = run([fake])
    await isUp(running)
    fake.endSubscriptions('error: shutting down idle subscription')
    await expect.poll(() => running.listening.retryAtMs).toBeDefined()
    fake.say({ text: 'meanwhile' })
    await running.host.advance(5000)
    await expect.poll(() => running.texts).toEqual(['meanwhile'])
  })
})

describe('the list of relays', () => {
  const lists = (fake: RelaynetFake) => fake.events.filter(({ kind }) => kind === 10_050)

  test('is published once when the key has none', async () => {
    const fake = await relay()
    const running = run([fake], { section: { publish_relay_list: true } })
    await isUp(running)
    await running.host.advance(60_000)
    await expect.poll(() => lists(fake)).toMatchObject([{ pubkey: pubkeyOf('bot'), tags: [['relay', fake.relayUrl]] }])
    const [{ id } = {}] = lists(fake)
    await running.stop()
    const again = run([fake], { section: { publish_relay_list: true } })
    await isUp(again)
    await again.host.advance(60_000)
    await running.stop()
    expect(lists(fake).map((list) => list.id)).toEqual([id])
  })

  test('names no relay whose URL has a query, which may hold a credential', async () => {
    const [open, closed] = [await relay(), await relay()]
    const secret = `${closed.relayUrl}/?token=SECRET`
    const running = run([open], { section: { relays: [open.relayUrl, secret], publish_relay_list: true } })
    await isUp(running)
    await running.host.advance(60_000)
    await expect.poll(() => lists(open)).toMatchObject([{ tags: [['relay', open.relayUrl]] }])
    closed.show({ ...write({ text: 'forged', atMs: START_MS }).event, sig: '0'.repeat(128) })
    closed.publish(wrapAt('next week', START_MS + 7 * DAY_MS, START_MS))
    const ignored = () => running.host.logs.filter(({ message }) => message.includes('ignored'))
    await expect.poll(() => ignored().length).toBe(2)
    expect(JSON.stringify(running.host.logs)).not.toContain('SECRET')
  })

  test('is not published when no relay may be named', async () => {
    const fake = await relay()
    const running = run([], { section: { relays: [`${fake.relayUrl}/?token=SECRET`], publish_relay_list: true } })
    await isUp(running)
    await running.host.advance(60_000)
    await expect.poll(() => running.host.logs.map(({ message }) => message)).toContainEqual(expect.stringContaining('has a query'))
    expect(lists(fake)).toEqual([])
  })

  test('of the key is never replaced', async () => {
    const fake = await relay()
    const { finalizeEvent } = await import('nostr-tools/pure')
    const list = finalizeEvent(
      { kind: 10_050, created_at: 1, tags: [['relay', 'wss://elsewhere.example']], content: '' },
      secretKeyOfPerson('bot'),
    )
    fake.publish(list)
    const running = run([fake], { section: { publish_relay_list: true } })
    await isUp(running)
    await running.host.advance(60_000)
    await expect.poll(() => running.host.logs.filter(({ message }) => message.includes('kind 10050')).length).toBe(1)
    expect(lists(fake).map(({ id }) => id)).toEqual([list.id])
  })
})

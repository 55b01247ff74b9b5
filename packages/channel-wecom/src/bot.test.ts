/** The channel as an AI bot on the long connection of the fake, which keeps nothing. */
import { AppError, type Attachment, type Channel, type Inbound } from '@sluice/sdk'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { type TestHost, testHost } from '@sluice/testkit/host'
import { type Listening, startListening } from '@sluice/testkit/listening'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import * as v from 'valibot'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { wecomSection } from './config.ts'
import feature from './index.ts'
import { BOT, startWecomFake, type WecomFake } from './testing/fake.ts'

const START_MS = Date.UTC(2026, 0, 1)
const { signal } = new AbortController()
let fake: WecomFake
let clock: TestClock
let host: TestHost
let channel: Channel
let listening: Listening
let received: Inbound[]
let storeError: AppError | undefined
let refused: number

const build = (): Channel => {
  const section = { ...BOT, api_url: fake.url, ws_url: fake.wsUrl, allowed_users: ['*'] }
  const [built] = feature.build(host, v.parse(wecomSection.schema, section)).channels ?? []
  if (!built) throw new Error('The section of the fake builds no channel.')
  return built
}
const listen = (over = channel) =>
  startListening(over, host, async (inbound) => {
    if (storeError) {
      refused += 1
      throw storeError
    }
    received.push(inbound)
  })
const subscribed = () => expect.poll(() => fake.bot.isSubscribed).toBe(true)
const advancing = async (holds: () => boolean) =>
  expect
    .poll(async () => {
      await clock.advance(500)
      return holds()
    })
    .toBe(true)
const texts = () => received.map(({ text }) => text)
let messages = 0
const message = (text = 'hello', more: object = {}) => ({ text, clientId: `client-${++messages}`, ...more })
async function heard(said: Parameters<WecomFake['say']>[0]): Promise<Inbound> {
  const id = fake.say(said)
  await expect.poll(() => received.some((each) => each.id === id)).toBe(true)
  return received.find((each) => each.id === id) as Inbound
}

beforeEach(async () => {
  clock = testClock(START_MS)
  fake = await startWecomFake({ nowMs: clock.nowMs })
  host = testHost({ fetch, clock, keyValue: memoryKeyValue() })
  ;[received, storeError, refused] = [[], undefined, 0]
  channel = build()
  listening = listen()
  await subscribed()
  await expect.poll(() => listening.health.state).toBe('ok')
})
afterEach(async () => {
  await listening.stop()
  await fake.close()
})

test('stores messages in the order of arrival, however long the store fails', async () => {
  storeError = new AppError('unavailable', 'the disk is full')
  for (const text of ['one', 'two', 'three']) fake.say({ text })
  await expect.poll(() => refused).toBeGreaterThan(0)
  storeError = undefined
  await advancing(() => received.length === 3)
  expect(texts()).toEqual(['one', 'two', 'three'])
})

test('pings every 30 s, and stays connected', async () => {
  for (let pings = 0; pings < 4; pings++) {
    await clock.advance(29_000)
    expect(fake.bot.pings).toBe(pings)
    await clock.advance(1000)
    await expect.poll(() => fake.bot.pings, { interval: 1 }).toBe(pings + 1)
  }
  expect(fake.bot.opened).toBe(1)
})

test('a break reports the time span of which messages may be missing', async () => {
  await clock.advance(60_000)
  fake.cut()
  await expect.poll(() => fake.bot.open).toBe(0)
  fake.say({ text: 'lost' })
  await advancing(() => fake.bot.isSubscribed)
  fake.say({ text: 'after' })
  await expect.poll(texts).toEqual(['after'])
  expect(listening.gaps).toHaveLength(1)
  expect((listening.gaps[0]?.sinceMs ?? 0) - START_MS - 60_000).toBeLessThanOrEqual(500)
})

test('another program with the same bot is reported, and not fought against', async () => {
  const other = listen(build())
  await expect.poll(() => listening.health.detail ?? '').toContain('Another program connected')
  await clock.advance(60_000)
  expect([fake.bot.opened, other.health.state]).toEqual([2, 'ok'])
  await other.stop()
})

test('a wrong secret is for the operator, and does not appear', async () => {
  fake.changeSecrets()
  fake.cut()
  await advancing(() => (listening.health.detail ?? '').includes('Check bot_id and bot_secret'))
  expect(JSON.stringify([host.logs, listening.health])).not.toContain(BOT.bot_secret)
})

test('frames of an unknown kind disturb nothing', async () => {
  for (const frame of [
    '{',
    '[]',
    '{}',
    '{"cmd":"x"}',
    '{"cmd":"aibot_msg_callback"}',
    '{"cmd":"aibot_event_callback","body":7}',
    '{"headers":{"req_id":"x"}}',
  ])
    fake.bot.raw(frame)
  expect((await heard({ text: 'still here' })).text).toBe('still here')
})

describe('messages', () => {
  test('in a group are without the mention of the bot', async () => {
    expect(await heard({ text: 'deploy @now', chat: 'wrOps' })).toMatchObject({
      text: 'deploy @now',
      to: { to: 'chat:wrOps' },
      sender: 'ada',
    })
  })

  test('with pictures and text, with a voice, and with a quote', async () => {
    const mixed = {
      msg_item: [
        { msgtype: 'text', text: { content: '@Sluice look' } },
        { msgtype: 'image', image: { url: 'https://x.myqcloud.com/1', aeskey: 'key=' } },
      ],
    }
    expect(await heard({ text: '', chat: 'wrOps', body: { msgtype: 'mixed', mixed } })).toMatchObject({
      text: 'look',
      attachments: [{ kind: 'image', source: { url: 'https://x.myqcloud.com/1#key=' } }],
    })
    expect(await heard({ text: '', body: { msgtype: 'voice', voice: { content: '早上好' } } })).toMatchObject({ text: '早上好' })
    const quote = { msgtype: 'text', text: { content: 'old' } }
    expect(await heard({ text: 'what?', body: { quote } })).toMatchObject({ text: 'what?', quoted: { text: 'old' } })
  })

  test('with a file are decrypted with their own key, up to a size', async () => {
    const { url, aeskey } = fake.encryptedFile(Buffer.from('meow'))
    const { attachments = [] } = await heard({ text: '', body: { msgtype: 'file', file: { url, aeskey } } })
    const [attachment] = attachments as [Attachment]
    const media = await channel.fetchMedia?.(attachment, { bytesMax: 4, signal })
    expect(Buffer.from(media?.bytes ?? []).toString()).toBe('meow')
    await expect(channel.fetchMedia?.(attachment, { bytesMax: 3, signal })).rejects.toMatchObject({ code: 'too_large' })
    const wrong = { ...attachment, source: { url: `${url}#${Buffer.alloc(32).toString('base64')}` } }
    await expect(channel.fetchMedia?.(wrong, { bytesMax: 4, signal })).rejects.toMatchObject({ code: 'invalid_request' })
    for (const address of ['https://evil.example/x#key', 'http://qq.com/x', 'https://10.0.0.1/', ''])
      await expect(channel.fetchMedia?.({ ...attachment, source: { url: address } }, { bytesMax: 4, signal })).rejects.toMatchObject({
        code: 'invalid_request',
      })
  })
})

describe('a reply', () => {
  test('answers its message, and its other parts are messages of the bot', async () => {
    const { to } = await heard({ text: 'hi', chat: 'wrOps' })
    const { replyTo: _, ...rest } = to
    await channel.send(to, message('one <@all>'), signal)
    await channel.send(rest, message('two'), signal)
    expect(fake.bot.sent).toEqual([
      { via: 'answer', chat: 'chat:wrOps', type: 'stream', text: 'one <\u200B@all>' },
      { via: 'send', chat: 'chat:wrOps', type: 'markdown', text: 'two' },
    ])
  })

  test('after five minutes, or to a message that WeCom forgot, is a message of the bot', async () => {
    const { to } = await heard({ text: 'hi' })
    fake.bot.endRequests()
    await channel.send(to, message(), signal)
    await clock.advance(295_000)
    await advancing(() => listening.health.state === 'ok')
    await channel.send(to, message(), signal)
    expect(fake.bot.sent.map(({ via, chat }) => [via, chat])).toEqual([
      ['send', 'user:ada'],
      ['send', 'user:ada'],
    ])
  })

  test('without an answer of WeCom has an unknown outcome', async () => {
    const { to } = await heard({ text: 'hi' })
    fake.bot.silent.add('aibot_respond_msg')
    const sending = channel.send(to, message(), signal).catch((error: unknown) => error)
    await expect.poll(() => fake.bot.unanswered).toBe(1)
    await clock.advance(15_000)
    expect(await sending).toMatchObject({ code: 'upstream_timeout' })
  })

  test('whose connection breaks has an unknown outcome, and without a connection is not sent', async () => {
    const { to } = await heard({ text: 'hi' })
    fake.bot.silent.add('aibot_respond_msg')
    const sending = channel.send(to, message(), signal).catch((error: unknown) => error)
    await expect.poll(() => fake.bot.unanswered).toBe(1)
    fake.cut({ isDown: true })
    expect(await sending).toMatchObject({ code: 'upstream' })
    await expect(channel.send(to, message(), signal)).rejects.toMatchObject({ code: 'unavailable' })
  })

  test('waits while a thousand requests have no answer', async () => {
    fake.bot.silent.add('aibot_send_msg')
    const abort = new AbortController()
    const sending = Array.from({ length: 1000 }, () =>
      channel.send({ to: 'user:ada' }, message(), abort.signal).catch((error: unknown) => error),
    )
    await expect.poll(() => fake.bot.unanswered).toBe(1000)
    await expect(channel.send({ to: 'user:ada' }, message(), signal)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('Too many'),
    })
    abort.abort()
    for (const outcome of await Promise.all(sending)) expect(outcome).toMatchObject({ code: 'aborted' })
  })

  test('beyond the quota of a minute waits', async () => {
    for (let sent = 0; sent < 30; sent++) await channel.send({ to: 'user:ada' }, message(), signal)
    await expect(channel.send({ to: 'user:ada' }, message(), signal)).rejects.toMatchObject({ code: 'rate_limited', retryAfterSecs: 60 })
  })

  test('of the longest text fits, whatever its characters', async () => {
    const { to } = await heard({ text: 'hi' })
    for (const character of ['字', '\n', '"', '😀', '\u0001'])
      await channel.send(to, message(character.repeat(Math.floor(channel.limits.text / Buffer.byteLength(character)))), signal)
    expect(fake.bot.sent).toHaveLength(5)
  })
})

test('files are uploaded in chunks, and follow the text', async () => {
  const large = Buffer.alloc(1_200_000, 'x')
  const attachments = [
    { kind: 'image', name: 'cat.png', source: { bytes: Buffer.from('meow!') } },
    { kind: 'file', name: 'log.txt', source: { bytes: large } },
  ]
  await channel.send({ to: 'chat:wrOps' }, message('see', { attachments }), signal)
  expect(fake.bot.sent.map(({ type, chat, mediaId }) => [type, chat, mediaId])).toEqual([
    ['markdown', 'chat:wrOps', undefined],
    ['image', 'chat:wrOps', 'bot-media-1'],
    ['file', 'chat:wrOps', 'bot-media-2'],
  ])
  expect(fake.bot.uploads.get('bot-media-2')?.bytes.equals(large)).toBe(true)
})

test('buttons are a card after the text, and a press names the message', async () => {
  const buttons = [
    { label: 'Approve', value: 'approve:1', tone: 'good' },
    { label: 'Deny', value: 'deny:1', tone: 'bad' },
  ]
  const sent = await channel.send({ to: 'user:ada' }, message('May it run?', { buttons, clientId: 'c-9' }), signal)
  expect(sent).toEqual({ id: 'c-9' })
  expect(fake.bot.sent).toMatchObject([
    { text: 'May it run?' },
    { card: { task: 'c-9', buttons: [{ text: 'Approve', key: 'approve:1' }, { text: 'Deny' }] } },
  ])
  const event = { eventtype: 'template_card_event', template_card_event: { event_key: 'approve:1', task_id: 'c-9' } }
  fake.bot.push('aibot_event_callback', { msgid: 'e-1', from: { userid: 'ada' }, chattype: 'single', msgtype: 'event', event }, 'user:ada')
  await expect.poll(() => received).toMatchObject([{ id: 'e-1', sender: 'ada', text: '', pressed: { message: 'c-9', value: 'approve:1' } }])
})

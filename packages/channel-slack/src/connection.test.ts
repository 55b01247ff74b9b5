/** Socket mode over real sockets: acknowledgements, repeated envelopes, replaced and broken connections. */
import { AppError } from '@sluice/sdk'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { SLACK_BOT, SLACK_BOT_TOKEN, type SlackFake, startSlackFake } from './testing/fake.ts'
import { createTestChannel, soon, type TestChannel, type TestChannelOptions } from './testing/test-channel.ts'

let fake: SlackFake
let bots: TestChannel[] = []
beforeEach(async () => {
  fake = await startSlackFake({ channels: ['C1', 'C2', 'CPROMPTS', 'D1'], ackMs: 60_000 })
})
afterEach(async () => {
  await Promise.all(bots.map((bot) => bot.stop()))
  bots = []
  await fake.close()
})

function listening(options?: TestChannelOptions): TestChannel {
  const bot = createTestChannel(fake, options).listen()
  bots.push(bot)
  return bot
}
async function connected(options?: TestChannelOptions): Promise<TestChannel> {
  const bot = listening(options)
  await soon(() => expect(bot.health().state).toBe('ok'))
  return bot
}
const receives = (bot: TestChannel, ...texts: string[]) => soon(() => expect(bot.received.map(({ text }) => text)).toEqual(texts))
/** Advances the clock until `check` passes. */
const eventually = (bot: TestChannel, check: () => void) =>
  vi.waitFor(
    async () => {
      await bot.host.advance(500)
      check()
    },
    { timeout: 20_000, interval: 10 },
  )
const connects = () => fake.requests.filter(({ path }) => path.endsWith('/apps.connections.open')).length

test('a message arrives with the place for its reply', async () => {
  const bot = await connected()
  const root = fake.say({ text: 'one &amp; only' })
  const reply = fake.say({ text: 'two', thread: root, user: 'UBOB' })
  await receives(bot, 'one & only', 'two')
  fake.say({ text: 'three', channel: 'D1' })
  await receives(bot, 'one & only', 'two', 'three')
  expect(bot.received).toMatchObject([
    { id: `C1:${root}`, account: 'A0123', sender: 'UADA', to: { to: 'C1', thread: root } },
    { id: `C1:${reply}`, sender: 'UBOB', to: { to: 'C1', thread: root } },
    { to: { to: 'D1' } },
  ])
  expect(bot.received[2]?.to).toEqual({ to: 'D1' })
})

test('a mention arrives as two events with the same id', async () => {
  const bot = await connected()
  const ts = fake.say({ text: `<@${SLACK_BOT.user}>: hi` })
  await receives(bot, 'hi', 'hi')
  expect(new Set(bot.received.map(({ id }) => id))).toEqual(new Set([`C1:${ts}`]))
})

test('ignored events are acknowledged', async () => {
  const bot = await connected({ config: { channel_ids: ['C1'] } })
  await bot.channel.send({ to: 'C1' }, { text: 'mine', clientId: 'c' }, new AbortController().signal)
  fake.say({ text: 'elsewhere', channel: 'C2' })
  fake.say({ text: 'changed', subtype: 'message_changed' })
  fake.say({ text: 'accepted' })
  await soon(() => expect(fake.socket.acknowledged).toHaveLength(4))
  // A message written during the catch-up may arrive twice.
  await soon(() => expect(new Set(bot.received.map(({ text }) => text))).toEqual(new Set(['accepted'])))
})

describe('an acknowledgement', () => {
  test('is sent only once the message is durable', async () => {
    const bot = await connected()
    const durable = Promise.withResolvers<void>()
    bot.storeWith(() => durable.promise)
    fake.say({ text: 'x' })
    await soon(() => expect(fake.socket.delivered).toHaveLength(1))
    expect(fake.socket.acknowledged).toEqual([])
    durable.resolve()
    await soon(() => expect(fake.socket.acknowledged).toHaveLength(1))
  })

  test('that is missing makes Slack send the message again', async () => {
    await fake.close()
    fake = await startSlackFake({ ackMs: 60 })
    const bot = await connected()
    const ids: string[] = []
    bot.storeWith(async ({ id }) => {
      ids.push(id)
      if (ids.length < 3) throw new AppError('unavailable', 'the disk is full')
    })
    const ts = fake.say({ text: 'x' })
    await eventually(bot, () => expect(fake.socket.acknowledged).toHaveLength(1))
    expect(new Set(ids)).toEqual(new Set([`C1:${ts}`]))
    expect(fake.socket.delivered.map(({ attempt }) => attempt)).toContain(1)
  })

  test('that is missing starts a catch-up if the message is not repeated', async () => {
    const bot = await connected()
    let tries = 0
    bot.storeWith(async () => {
      if (++tries === 1) throw new AppError('unavailable', 'the disk is full')
    })
    fake.say({ text: 'x' })
    await receives(bot, 'x')
    expect([fake.socket.acknowledged, fake.socket.delivered.length]).toEqual([[], 1])
  })

  test('of a press is sent only once the press is durable', async () => {
    const bot = await connected()
    const { id } = await prompt(bot)
    await soon(() => expect(fake.socket.acknowledged).toHaveLength(1))
    const durable = Promise.withResolvers<void>()
    bot.storeWith(() => durable.promise)
    fake.press({ message: id, value: 'approve:1', channel: 'CPROMPTS' })
    await soon(() => expect(fake.socket.delivered).toHaveLength(2))
    expect(fake.socket.acknowledged).toHaveLength(1)
    durable.resolve()
    await soon(() => expect(fake.socket.acknowledged).toHaveLength(2))
  })
})

const buttons = [
  { label: 'Approve', value: 'approve:1', tone: 'good' },
  { label: 'Reject', value: 'reject:1', tone: 'bad' },
] as const
const prompt = (bot: TestChannel) =>
  bot.channel.send({ to: 'CPROMPTS' }, { text: 'Deploy?', buttons, clientId: 'c' }, new AbortController().signal)

describe('a prompt', () => {
  test('delivers the press of every user, strangers included', async () => {
    const bot = await connected()
    const { id } = await prompt(bot)
    fake.press({ message: id, value: 'reject:1', channel: 'CPROMPTS', user: 'USTRANGER' })
    fake.press({ message: id, value: 'approve:1', channel: 'CPROMPTS' })
    await soon(() => expect(bot.received).toHaveLength(2))
    expect(bot.received).toMatchObject([
      { sender: 'USTRANGER', text: '', pressed: { message: id, value: 'reject:1' }, to: { to: 'CPROMPTS', thread: id } },
      { sender: 'UADA', text: '', pressed: { message: id, value: 'approve:1' } },
    ])
    expect(bot.received[0]?.id).toMatch(/^act:\d+\.\d+:USTRANGER:CPROMPTS$/)
    expect(new Set(bot.received.map(({ id }) => id)).size).toBe(2)
  })

  test('is answered in its own thread only', async () => {
    const bot = await connected()
    const { id } = await prompt(bot)
    const other = fake.say({ text: 'by the way', channel: 'CPROMPTS' })
    fake.say({ text: 'approve', channel: 'CPROMPTS', thread: id })
    fake.say({ text: 'approve', channel: 'CPROMPTS', thread: other, user: 'USTRANGER' })
    await receives(bot, 'by the way', 'approve', 'approve')
    expect(bot.received.map(({ to }) => to.thread)).toEqual([other, id, other])
  })

  test('is answerable in a notification channel that is otherwise ignored', async () => {
    const bot = await connected({ config: { channel_ids: ['C1'], notification_channel_id: 'CPROMPTS', mention_only: true } })
    const { id } = await prompt(bot)
    fake.say({ text: 'chatter', channel: 'CPROMPTS' })
    fake.say({ text: 'approve', channel: 'CPROMPTS', thread: id })
    await receives(bot, 'approve')
  })
})

describe('a connection that ends', () => {
  test('is replaced in advance without lost or repeated messages', async () => {
    const bot = await connected()
    const durable = Promise.withResolvers<void>()
    bot.storeWith(() => durable.promise)
    fake.say({ text: 'before' })
    await soon(() => expect(fake.socket.delivered).toHaveLength(1))
    fake.socket.announce('refresh_requested')
    await eventually(bot, () => expect(fake.socket.opened).toBe(2))
    expect(fake.socket.open).toBe(2)
    durable.resolve()
    await eventually(bot, () => expect(fake.socket.open).toBe(1))
    fake.say({ text: 'after' })
    await receives(bot, 'before', 'after')
    expect(fake.requests.filter(({ path }) => path.endsWith('conversations.history'))).toEqual([])
  })

  test.each(['close', 'reset'] as const)('by %s is opened again, and missed messages are read', async (how) => {
    const bot = await connected()
    fake.say({ text: 'before' })
    await receives(bot, 'before')
    fake.socket.cut(how)
    fake.say({ text: 'meanwhile', isLost: true })
    await eventually(bot, () => expect(bot.received.map(({ text }) => text)).toEqual(['before', 'meanwhile']))
    fake.say({ text: 'after' })
    await receives(bot, 'before', 'meanwhile', 'after')
  })

  test('without a close frame is noticed', async () => {
    const bot = await connected()
    fake.socket.cut('mute')
    await eventually(bot, () => expect(fake.socket.opened).toBe(2))
    expect(bot.host.clock.monotonicMs()).toBeGreaterThan(40_000)
  })

  test('repeatedly is opened again with growing delays', async () => {
    const bot = await connected()
    for (let ends = 1; ends <= 3; ends++) {
      await soon(() => expect(bot.health().state).toBe('ok'))
      fake.socket.cut('reset')
      await soon(() => expect(bot.health().state).not.toBe('ok'))
      expect(connects()).toBe(ends)
      await eventually(bot, () => expect(connects()).toBe(ends + 1))
    }
    expect(bot.host.clock.monotonicMs()).toBeGreaterThan(3000)
  })
})

describe('a failed connection', () => {
  test.each([
    ['bot_token', 'auth.test'],
    ['app_token', 'apps.connections.open'],
  ])('with a wrong %s is reported and not retried for ten minutes', async (key, method) => {
    const bot = listening({ config: { [key]: 'xoxb-wrong-token' } })
    await soon(() => expect(bot.health()).toMatchObject({ state: 'down', detail: expect.stringContaining(key) }))
    expect(bot.health().detail).toBe(`slack answered invalid_auth to ${method} (are ${key} and its scopes right?)`)
    const asked = fake.requests.length
    await bot.host.advance(590_000)
    expect(fake.requests.length).toBe(asked)
    expect(JSON.stringify(bot.host.logs)).not.toContain('xoxb-wrong-token')
  })

  test('with socket mode turned off is reported and not retried for ten minutes', async () => {
    const bot = await connected()
    fake.socket.announce('link_disabled')
    await soon(() =>
      expect(bot.health()).toMatchObject({
        state: 'down',
        detail: 'Socket mode was turned off in the settings of the app (link_disabled)',
      }),
    )
    await soon(() => expect(fake.socket.open).toBe(0))
    await bot.host.advance(590_000)
    expect(connects()).toBe(1)
  })

  test('is retried after a temporary failure', async () => {
    fake.fail({ fault: 'status', status: 503 }, { times: 2 })
    const bot = listening()
    await eventually(bot, () => expect(bot.health().state).toBe('ok'))
  })

  test('is retried when Slack does not say hello', async () => {
    fake.socket.hush()
    const bot = listening()
    await soon(() => expect(fake.socket.opened).toBe(1))
    await eventually(bot, () => expect(fake.socket.opened).toBe(2))
    expect(bot.health()).toMatchObject({ state: 'down', detail: 'slack did not say hello within 15 s' })
  })

  test('to an address outside of Slack is not attempted', async () => {
    const elsewhere = { ok: true, url: 'ws://127.0.0.1:1/link/?ticket=xoxb-ticket' }
    fake.fail({ fault: 'status', status: 200, body: elsewhere }, { matches: ({ path }) => path.endsWith('open') })
    const bot = listening()
    await soon(() => expect(bot.health().detail).toBe('slack named a connection address that is not its own'))
    expect(JSON.stringify(bot.host.logs)).not.toContain('xoxb-ticket')
  })
})

test('malformed frames are ignored', async () => {
  const bot = await connected()
  const frames = ['', '{', 'null', '[]', '7', '{"type":"events_api"}', '{"type":"events_api","envelope_id":"e1"}']
  const odd = ['{"type":"events_api","envelope_id":"e2","payload":{"event":null}}', '{"type":"interactive","envelope_id":"e3","payload":7}']
  for (const frame of [...frames, ...odd, '{"type":"close","envelope_id":"e4"}', '{"type":"hello"}']) fake.socket.raw(frame)
  fake.say({ text: 'still here' })
  await receives(bot, 'still here')
  expect(fake.socket.opened).toBe(1)
})

test('health makes no request and reports the last event', async () => {
  const bot = await connected()
  expect(bot.health()).toEqual({ state: 'ok' })
  fake.say({ text: 'x' })
  await receives(bot, 'x')
  const asked = fake.requests.length
  for (let times = 0; times < 10; times++) bot.health()
  expect(bot.health()).toEqual({ state: 'ok', lastEventAtMs: bot.host.clock.nowMs() })
  expect([fake.requests.length, fake.socket.opened]).toEqual([asked, 1])
})

test('logs contain no secret and no text of a message', async () => {
  const bot = await connected()
  bot.storeWith(() => Promise.reject(new AppError('unavailable', 'the disk is full')))
  fake.say({ text: 'a private matter' })
  await soon(() => expect(bot.host.logs.length).toBeGreaterThan(1))
  fake.change({ bot_token: 'another', app_token: 'another' })
  fake.socket.cut('reset')
  await eventually(bot, () => expect(bot.health().state).toBe('down'))
  const shown = JSON.stringify(bot.host.logs, (_key, value) => (value instanceof Error ? `${value.stack} ${value.cause}` : value))
  expect(shown).not.toMatch(/private matter|token-01|ticket/)
  expect(SLACK_BOT_TOKEN).toContain('token-01')
})

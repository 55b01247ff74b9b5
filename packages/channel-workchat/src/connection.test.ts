import type { Inbound } from '@sluice/sdk'
import { AppError } from '@sluice/sdk'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { WORKCHAT_CN } from './config.ts'
import { encodeFrame } from './frame.ts'
import { PENDING_MAX } from './intake.ts'
import { startWorkchatFake, WORKCHAT_BOT, type WorkchatFake } from './testing/fake.ts'
import { createTestChannel, soon, type TestChannel, type TestChannelOptions } from './testing/test-channel.ts'

const START_MS = Date.UTC(2026, 0, 1)
let fake: WorkchatFake
const bots: TestChannel[] = []
beforeEach(async () => {
  fake = await startWorkchatFake({ ackMs: 60_000, againMs: [20, 20, 20, 20] })
})
afterEach(async () => {
  vi.restoreAllMocks()
  for (const bot of bots.splice(0)) await bot.stop()
  await fake.close()
})

/** Listens, and resolves once the channel is connected. */
async function connected(options: TestChannelOptions = {}): Promise<TestChannel> {
  const bot = createTestChannel(fake, options).listen()
  bots.push(bot)
  await soon(() => expect(bot.health().state).toBe('ok'))
  return bot
}
/** Advances the clock, and lets what arrives be read, until the condition holds. */
const advancing = (bot: TestChannel, holds: () => boolean) =>
  expect
    .poll(
      async () => {
        await bot.host.advance(500)
        return holds()
      },
      { interval: 1 },
    )
    .toBe(true)
const texts = ({ received }: TestChannel): string[] => received.map(({ text }) => text)
const MENTION = [{ key: '@_user_1', id: WORKCHAT_BOT, name: 'Sluice' }]

describe('an event', () => {
  test('is acknowledged only once its message is durable', async () => {
    const bot = await connected()
    const durable = Promise.withResolvers<void>()
    bot.storeWith(() => durable.promise)
    fake.say({ text: 'hello' })
    await expect.poll(() => fake.socket.pings).toBe(1)
    expect(fake.socket.codes).toEqual([])
    durable.resolve()
    await soon(() => expect(fake.socket.codes).toEqual([200]))
    expect(texts(bot)).toEqual(['hello'])
  })

  test('whose message could not be stored comes again', async () => {
    const bot = await connected()
    let attempts = 0
    bot.storeWith(async () => {
      attempts += 1
      if (attempts === 1) throw new AppError('unavailable', 'the disk is full')
    })
    fake.say({ text: 'hello' })
    await soon(() => expect(fake.socket.codes).toContain(200))
    expect(fake.socket.codes[0]).toBe(500)
    expect(new Set(texts(bot))).toEqual(new Set(['hello']))
  })

  test('of several frames is joined', async () => {
    await fake.close()
    fake = await startWorkchatFake({ partBytes: 37 })
    const bot = await connected()
    fake.say({ text: 'hello 漢字 '.repeat(50) })
    await soon(() => expect(texts(bot)).toEqual(['hello 漢字 '.repeat(50).trim()]))
  })

  test('of another kind is acknowledged and delivers nothing', async () => {
    const bot = await connected()
    fake.socket.emit({ schema: '2.0', header: { event_type: 'im.chat.disbanded_v1', event_id: 'e' }, event: {} })
    fake.socket.emit({})
    await soon(() => expect(fake.socket.codes).toEqual([200, 200]))
    expect(bot.received).toEqual([])
  })

  test('is delivered after those before it', async () => {
    const bot = await connected()
    for (let index = 0; index < 20; index++) fake.say({ text: `m${index}` })
    await soon(() => expect(bot.received).toHaveLength(20))
    expect(texts(bot)).toEqual(Array.from({ length: 20 }, (_, index) => `m${index}`))
  })

  test('beyond the bound of waiting events is refused, and comes again', async () => {
    const bot = await connected()
    const durable = Promise.withResolvers<void>()
    bot.storeWith(() => durable.promise)
    for (let index = 0; index <= PENDING_MAX; index++) fake.say({ text: `m${index}` })
    await soon(() => expect(fake.socket.codes).toContain(500))
    expect(fake.socket.codes).not.toContain(200)
    durable.resolve()
    await soon(() => expect(new Set(texts(bot)).size).toBe(PENDING_MAX + 1))
  })

  test('in frames that are damaged breaks nothing', async () => {
    const bot = await connected()
    const headers = [
      { key: 'type', value: 'event' },
      { key: 'message_id', value: 'm' },
      { key: 'sum', value: '2' },
      { key: 'seq', value: '7' },
    ]
    for (const frame of [Buffer.from('ff', 'hex'), encodeFrame({ seqId: 0n, logId: 0n, service: 1, method: 1, headers })])
      fake.socket.raw(frame)
    fake.say({ text: 'hello' })
    await soon(() => expect(texts(bot)).toEqual(['hello']))
    expect(bot.host.logs.filter(({ message }) => message === 'frame of workchat not understood')).toHaveLength(2)
  })
})

describe('messages', () => {
  test('in groups lose the mention of the bot, and keep mentions of people', async () => {
    const bot = await connected()
    const mentions = [...MENTION, { key: '@_user_2', id: 'ou_bob', name: 'Bob' }]
    fake.say({ chat: 'oc_team', text: '@_user_1 ask @_user_2 and @_all', mentions })
    await soon(() => expect(texts(bot)).toEqual(['ask @Bob and @all']))
  })

  test('in groups must mention the bot with `mention_only`, direct ones need not', async () => {
    const bot = await connected({ config: { mention_only: true } })
    fake.say({ chat: 'oc_team', text: 'not for the bot' })
    fake.say({ chat: 'oc_team', text: '@_user_1 for the bot', mentions: MENTION })
    fake.say({ text: 'direct' })
    await soon(() => expect(texts(bot).toSorted()).toEqual(['direct', 'for the bot', 'not for the bot']))
    expect(bot.received.filter(({ overheardOnly }) => overheardOnly)).toMatchObject([{ text: 'not for the bot' }])
  })

  test('have the sender and not the conversation as their identity', async () => {
    const bot = await connected()
    fake.say({ chat: 'oc_team', user: 'ou_bob', text: 'x' })
    await soon(() => expect(bot.received).toMatchObject([{ sender: 'ou_bob', to: { to: 'oc_team' } }]))
    const { channel } = bot
    expect([channel.matches?.('on_bob', 'ou_bob'), channel.matches?.('u_bob', 'ou_bob'), channel.matches?.('on_ada', 'ou_bob')]).toEqual([
      true,
      true,
      false,
    ])
  })

  test('in a thread are answered there, and a reply may open one', async () => {
    const bot = await connected({ config: { thread_replies: true } })
    const root = fake.say({ chat: 'oc_team', text: 'root' })
    const answer = fake.say({ chat: 'oc_team', text: 'answer', replyTo: root, inThread: true })
    const direct = fake.say({ text: 'direct' })
    await soon(() => expect(bot.received).toHaveLength(3))
    // Conversations have no order among each other.
    const inOrder = bot.received.toSorted((a, b) => (a.sentAtMs ?? 0) - (b.sentAtMs ?? 0))
    expect(inOrder.map(({ id, to }) => [id, to])).toEqual([
      [root, { to: 'oc_team', thread: root, replyTo: root }],
      [answer, { to: 'oc_team', thread: root, replyTo: answer }],
      [direct, { to: 'oc_ada' }],
    ])
  })

  test('have the name of their writer, which is looked up once', async () => {
    const bot = await connected()
    for (const text of ['one', 'two']) fake.say({ text, chat: 'oc_team' })
    await soon(() => expect(bot.received.map(({ name }) => name)).toEqual(['Name of ou_ada', 'Name of ou_ada']))
    expect(fake.requests.filter(({ path }) => path === '/open-apis/contact/v3/users/ou_ada')).toHaveLength(1)
  })

  test('that quote another one bring its words, which the channel reads once', async () => {
    const bot = await connected()
    const first = fake.say({ chat: 'oc_team', user: 'ou_bob', text: 'ticket 4711 burns' })
    fake.say({ chat: 'oc_team', text: 'why?', replyTo: first })
    fake.say({ chat: 'oc_team', text: 'when?', replyTo: first })
    await soon(() => expect(texts(bot)).toEqual(['ticket 4711 burns', 'why?', 'when?']))
    const quoted = { id: first, author: { id: 'ou_bob' }, text: 'ticket 4711 burns' }
    expect(bot.received.map((message) => message.quoted)).toEqual([undefined, quoted, quoted])
    expect(fake.requests.filter(({ path }) => path.endsWith(first))).toHaveLength(1)
  })

  test('that answer the bot are replies to it', async () => {
    const bot = await connected()
    const { id } = await bot.channel.send({ to: 'oc_team' }, { text: 'Shall I?', clientId: 'c' }, new AbortController().signal)
    fake.say({ chat: 'oc_team', text: 'please', replyTo: id })
    await soon(() => expect(bot.received).toMatchObject([{ addressed: 'reply', quoted: { by: 'bot', text: 'Shall I?' } }]))
  })

  test('that quote a recalled message, or one that cannot be read, arrive without its words', async () => {
    const bot = await connected()
    const gone = fake.say({ text: 'oops', isLost: true })
    fake.recall(gone)
    fake.say({ text: 'why?', replyTo: gone })
    await soon(() => expect(texts(bot)).toContain('why?'))
    expect(bot.received.find(({ text }) => text === 'why?')).toMatchObject({ inReplyTo: gone })
    expect(bot.received.some(({ quoted }) => quoted)).toBe(false)
  })

  test('that are edited or recalled are changes, in their order', async () => {
    const bot = await connected()
    const id = fake.say({ text: 'wrogn' })
    fake.edit(id, 'wrong')
    fake.edit(id, 'right')
    fake.recall(id)
    await soon(() => expect(bot.received).toHaveLength(4))
    expect(bot.received.map(({ text, changes }) => [text, changes?.what, changes?.message])).toEqual([
      ['wrogn', undefined, undefined],
      ['wrong', 'edited', id],
      ['right', 'edited', id],
      ['', 'deleted', id],
    ])
    expect(new Set(bot.received.map((inbound) => inbound.id)).size).toBe(4)
  })

  test('of pressed buttons name the message, the value and the thread', async () => {
    const bot = await connected()
    const buttons = [{ label: 'Yes', value: 'approve:1', tone: 'good' }] as const
    const root = fake.say({ chat: 'oc_team', text: 'x', isLost: true })
    const to = { to: 'oc_team', thread: root, replyTo: root }
    const sent = await bot.channel.send(to, { text: 'May I?', clientId: 'c', buttons }, new AbortController().signal)
    fake.press({ message: sent.id, value: 'approve:1', user: 'ou_bob' })
    await soon(() => expect(bot.received).toHaveLength(1))
    expect(bot.received).toMatchObject([
      { sender: 'ou_bob', text: '', pressed: { message: sent.id, value: 'approve:1' }, to: { to: 'oc_team', thread: root } },
    ])
  })
})

describe('a connection', () => {
  test('that breaks is followed by the messages that were missed, oldest first and before new ones', async () => {
    const bot = await connected()
    fake.say({ text: 'before' })
    const root = fake.say({ chat: 'oc_team', text: 'root' })
    fake.say({ chat: 'oc_team', text: 'in thread', replyTo: root, inThread: true })
    await soon(() => expect(bot.received).toHaveLength(3))
    fake.cut({ isDown: true })
    await soon(() => expect(bot.health().state).not.toBe('ok'))
    for (let index = 0; index < 120; index++) fake.say({ text: `missed ${index}`, isLost: true })
    fake.say({ chat: 'oc_team', text: 'missed in thread', replyTo: root, inThread: true, isLost: true })
    const other = fake.say({ chat: 'oc_team', text: 'other root', isLost: true })
    fake.say({ chat: 'oc_team', text: 'in a new thread', replyTo: other, inThread: true, isLost: true })
    fake.cut()
    await soon(async () => {
      await bot.host.advance(1000)
      expect(bot.health().state).toBe('ok')
    })
    fake.say({ text: 'after' })
    const others = ['missed in thread', 'other root', 'in a new thread', 'after']
    await soon(() => expect(texts(bot)).toEqual(expect.arrayContaining(others)))
    const unique = [...new Map(bot.received.map(({ id, text }) => [id, text])).values()]
    expect(unique.filter((text) => text.startsWith('missed ') && text !== 'missed in thread')).toEqual(
      Array.from({ length: 120 }, (_, index) => `missed ${index}`),
    )
    expect(unique.indexOf('after')).toBeGreaterThan(unique.indexOf('missed 119'))
    expect(bot.gaps).toEqual([])
  })

  test('after more than an hour reports the gap with its time, and skips what is too old', async () => {
    const keyValue = memoryKeyValue()
    await keyValue.set('cursors:workchat', { oc_ada: { after: String(START_MS), type: 'p2p' } })
    fake.say({ text: 'too old', isLost: true })
    fake.say({ text: 'too old, too', isLost: true })
    const bot = createTestChannel(fake, { host: { keyValue } })
    bots.push(bot)
    await bot.host.advance(2 * 3_600_000)
    bot.listen()
    const gap = { sinceMs: START_MS, why: expect.stringContaining('more than an hour old') }
    await soon(() => expect(bot.gaps).toEqual([gap]))
    await soon(() => expect(bot.health().state).toBe('ok'))
    fake.socket.cut('reset')
    await soon(async () => {
      await bot.host.advance(1000)
      expect(fake.socket.opened).toBeGreaterThan(1)
    })
    fake.say({ text: 'new' })
    await soon(() => expect(texts(bot)).toEqual(['new']))
    // A skipped message is reported once.
    expect(bot.gaps).toEqual([gap])
  })

  test('knows after a restart the other ids of people whom the allowlist names', async () => {
    const keyValue = memoryKeyValue()
    const options = { config: { allowed_users: ['on_ada', 'u_cleo'] }, host: { keyValue } }
    const first = await connected(options)
    for (const user of ['ou_ada', 'ou_bob', 'ou_cleo']) fake.say({ text: 'hello', user })
    await soon(() => expect(first.received).toHaveLength(3))
    await first.stop()
    expect(await keyValue.get('identities:workchat')).toEqual({ ou_ada: ['on_ada'], ou_cleo: ['u_cleo'] })
    const { channel } = await connected(options)
    const isKnown = (entry: string, sender: string) => channel.matches?.(entry, sender)
    expect([isKnown('on_ada', 'ou_ada'), isKnown('u_cleo', 'ou_cleo'), isKnown('on_bob', 'ou_bob')]).toEqual([true, true, false])
  })

  test('without permission for a history reports the gap, and reads the others', async () => {
    const keyValue = memoryKeyValue()
    const after = String(START_MS)
    await keyValue.set('cursors:workchat', { oc_gone: { after, type: 'group' }, oc_ada: { after, type: 'p2p' } })
    fake.say({ text: 'missed', isLost: true })
    const bot = await connected({ host: { keyValue } })
    await soon(() => expect(texts(bot)).toEqual(['missed']))
    expect(bot.gaps).toEqual([{ sinceMs: START_MS, why: expect.stringContaining('oc_gone cannot be read') }])
  })

  test('of each section keeps its own positions', async () => {
    const keyValue = memoryKeyValue()
    const bot = await connected({ path: WORKCHAT_CN, host: { keyValue } })
    expect(bot.channel.name).toBe('workchat_cn')
    fake.say({ text: 'x' })
    await soon(() => expect(bot.received).toHaveLength(1))
    await bot.stop()
    expect(await keyValue.get('cursors:workchat_cn')).toMatchObject({ oc_ada: { type: 'p2p' } })
    expect(await keyValue.get('cursors:workchat')).toBeUndefined()
  })

  test('that the platform closes waits a part of the time that the platform asks for', async () => {
    fake.setClientConfig({ ReconnectNonce: 1000 })
    const bot = await connected()
    const random = vi.spyOn(Math, 'random')
    for (const part of [0.9, 0.1, 0.5]) {
      random.mockReturnValue(part)
      // After a connection that lasted a minute, the delay is not that of an outage.
      await bot.host.advance(60_000)
      fake.socket.cut('close')
      await soon(() => expect(bot.retryAtMs()).toBeDefined())
      const delay = (bot.retryAtMs() ?? 0) - bot.host.clock.monotonicMs()
      expect(delay).toBeGreaterThanOrEqual(part * 1_000_000)
      expect(delay).toBeLessThanOrEqual(part * 1_000_000 + 30_000)
      await bot.host.advance(delay)
      await soon(() => expect(bot.health().state).toBe('ok'))
    }
  })

  test('sends pings as often as the platform asks, also when it changes its mind', async () => {
    fake.setClientConfig({ PingInterval: 60 })
    const bot = await connected()
    await soon(() => expect(fake.socket.pings).toBe(1))
    fake.setClientConfig({ PingInterval: 90 })
    await bot.host.advance(60_000)
    await soon(() => expect(fake.socket.pings).toBe(2))
    await soon(() => expect(bot.host.clock.sleeping).toBeGreaterThan(0))
    await bot.host.advance(60_000)
    expect(fake.socket.pings).toBe(2)
    await bot.host.advance(30_000)
    await soon(() => expect(fake.socket.pings).toBe(3))
  })

  test('that falls silent is replaced within a minute, and without answers to pings of the protocol within three', async () => {
    const silentSecs = async (): Promise<number> => {
      const bot = await connected()
      await soon(() => expect(fake.socket.pings).toBeGreaterThan(0))
      const opened = fake.socket.opened
      const startMs = bot.host.clock.monotonicMs()
      fake.socket.cut('mute')
      await advancing(bot, () => bot.health().state !== 'ok' || fake.socket.opened > opened)
      const silentMs = bot.host.clock.monotonicMs() - startMs
      await advancing(bot, () => fake.socket.opened > opened)
      await bot.stop()
      return silentMs / 1000
    }
    expect(await silentSecs()).toBeLessThanOrEqual(60)
    fake.socket.ignorePings()
    const late = await silentSecs()
    expect(late).toBeGreaterThan(60)
    expect(late).toBeLessThanOrEqual(180)
  })

  test('whose other end answers no pings of the protocol stays open', async () => {
    fake.socket.ignorePings()
    const bot = await connected()
    for (let pings = 1; pings <= 5; pings++) await advancing(bot, () => fake.socket.pings >= pings)
    expect(bot.host.clock.monotonicMs()).toBeLessThanOrEqual(600_000)
    expect([fake.socket.opened, bot.health().state]).toEqual([1, 'ok'])
  })

  test('whose credentials are refused is down with the reason, and the secret is not in the log', async () => {
    fake.revoke(true)
    const bot = createTestChannel(fake).listen()
    bots.push(bot)
    await soon(() => expect(bot.health()).toMatchObject({ state: 'down', detail: expect.stringContaining('10014') }))
    expect(JSON.stringify(bot.host.logs)).not.toContain('workchat-app-secret-01')
  })

  test('that the platform refuses in the handshake is down with the reason, and the ticket is not in the log', async () => {
    fake.socket.refuse(514)
    const bot = createTestChannel(fake).listen()
    bots.push(bot)
    await soon(() => expect(bot.health()).toMatchObject({ state: 'down', detail: expect.stringContaining('514 refused') }))
    expect(JSON.stringify([bot.host.logs, bot.health()])).not.toContain('device_id')
  })

  test('is never opened to a host of another service', async () => {
    const bot = createTestChannel(fake, {
      host: {
        fetch: async (input, init) => {
          const response = await fetch(input, init)
          if (!String(input).endsWith('/callback/ws/endpoint')) return response
          const json = (await response.json()) as { data: { URL: string } }
          return Response.json({ ...json, data: { ...json.data, URL: 'wss://evil.example/ws?device_id=1&service_id=1' } })
        },
      },
    }).listen()
    bots.push(bot)
    await soon(() => expect(bot.health()).toMatchObject({ state: 'down', detail: expect.stringContaining('not its own') }))
  })
})

test('the allowlist of people is bounded', async () => {
  const { Identities, PEOPLE_MAX } = await import('./identities.ts')
  const identities = new Identities()
  for (let person = 0; person < PEOPLE_MAX + 10; person++) identities.learn({ openId: `ou_${person}`, others: [`on_${person}`] })
  expect(identities.size).toBe(PEOPLE_MAX)
  const last: Inbound['sender'] = `ou_${PEOPLE_MAX}`
  expect([identities.matches(`on_${PEOPLE_MAX}`, last), identities.matches('on_0', 'ou_0')]).toEqual([true, false])
})

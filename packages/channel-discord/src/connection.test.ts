/** Messages and button presses that arrive over the gateway. */
import { AppError } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { INTENTS } from './gateway.ts'
import {
  DISCORD_BOT,
  DISCORD_CHANNEL,
  DISCORD_DIRECT,
  DISCORD_ELSEWHERE,
  DISCORD_GUILD,
  DISCORD_OTHER_CHANNEL,
  DISCORD_USER,
} from './testing/fake.ts'
import { channelOn, discordHarness, listenTo, receives, until } from './testing/harness.ts'

const harness = discordHarness()

describe('the listener', () => {
  test('delivers a message with its sender and where to reply', async () => {
    const listening = await harness.connect()
    const id = harness.fake.say({ text: 'hello' })
    await receives(listening, 'hello')
    expect(listening.received[0]).toEqual({
      id,
      account: DISCORD_BOT,
      sender: DISCORD_USER,
      name: `user-${DISCORD_USER}`,
      to: { to: DISCORD_CHANNEL, replyTo: id },
      text: 'hello',
      addressed: 'overheard',
      sentAtMs: harness.host.clock.nowMs(),
    })
    expect(listening.health()).toMatchObject({ state: 'ok', lastEventAtMs: harness.host.clock.nowMs() })
  })

  test('ignores messages of the bot itself and of other bots', async () => {
    const listening = await harness.connect()
    await listening.channel.send({ to: DISCORD_CHANNEL }, { text: 'mine', clientId: 'c' }, new AbortController().signal)
    harness.fake.say({ text: 'beep', isBot: true })
    harness.fake.say({ text: 'person' })
    await receives(listening, 'person')
  })

  test('ignores other servers than guild_id, but not direct messages', async () => {
    const listening = await harness.connect({ guild_id: DISCORD_GUILD })
    harness.fake.say({ text: 'elsewhere', channel: DISCORD_ELSEWHERE })
    harness.fake.say({ text: 'directly', channel: DISCORD_DIRECT })
    await receives(listening, 'directly')
  })

  test('asks for no more intents than it needs', () => {
    expect(INTENTS).toBe(37_377)
  })

  test('delivers a reply in a thread of the bot as its own conversation', async () => {
    const listening = await harness.connect({ mention_only: true })
    const question = await listening.channel.send(
      { to: DISCORD_CHANNEL },
      { text: 'Deploy?', clientId: 'c', topic: 'Approval: deploy' },
      new AbortController().signal,
    )
    expect(harness.fake.threads.get(question.id)).toEqual({ name: 'Approval: deploy', parent: DISCORD_CHANNEL })
    harness.fake.say({ text: 'chatter' })
    harness.fake.say({ text: 'approve', channel: question.id })
    await receives(listening, 'chatter', 'approve')
    expect(listening.received.map(({ to, overheardOnly }) => [to.to, overheardOnly])).toEqual([
      [DISCORD_CHANNEL, true],
      [question.id, undefined],
    ])
  })

  test('reports the message that a reply quotes', async () => {
    const listening = await harness.connect()
    const { id } = await listening.channel.send({ to: DISCORD_CHANNEL }, { text: 'Deploy?', clientId: 'c' }, new AbortController().signal)
    harness.fake.say({ text: 'yes', replyTo: id })
    await receives(listening, 'yes')
    expect(listening.received[0]?.inReplyTo).toBe(id)
  })

  test('delivers a button press and acknowledges it once it is durable', async () => {
    const listening = await harness.connect()
    const buttons = [{ label: 'Approve', value: 'approve:1', tone: 'good' as const }]
    const { id } = await listening.channel.send(
      { to: DISCORD_CHANNEL },
      { text: 'Deploy?', clientId: 'c', buttons },
      new AbortController().signal,
    )
    listening.failDeliveries(new AppError('unavailable', 'the disk is full'))
    const press = harness.fake.press({ message: id, value: 'approve:1', user: '400000000000000002' })
    await until(() => expect(harness.host.clock.sleeping).toBeGreaterThan(1))
    expect(harness.fake.acknowledged).toEqual([])
    listening.acceptDeliveries()
    await harness.host.advance(1000)
    await until(() => expect(harness.fake.acknowledged).toEqual([press]))
    expect(listening.received).toEqual([
      {
        id: `ix:${press}`,
        account: DISCORD_BOT,
        sender: '400000000000000002',
        to: { to: DISCORD_CHANNEL, replyTo: id },
        text: '',
        sentAtMs: expect.any(Number),
        pressed: { message: id, value: 'approve:1' },
      },
    ])
  })
})

describe('a message that the inbox could not store', () => {
  test('is tried again before the messages after it', async () => {
    const listening = await harness.connect()
    listening.failDeliveries(new AppError('unavailable', 'the disk is full'))
    for (const text of ['one', 'two', 'three']) harness.fake.say({ text })
    await until(() => expect(harness.host.clock.sleeping).toBeGreaterThan(1))
    expect(listening.texts()).toEqual([])
    listening.acceptDeliveries()
    await harness.host.advance(1000)
    await receives(listening, 'one', 'two', 'three')
  })

  test('is fetched after a restart', async () => {
    const before = await harness.connect()
    before.failDeliveries(new AppError('unavailable', 'the disk is full'))
    harness.fake.say({ text: 'one' })
    await until(() => expect(harness.host.clock.sleeping).toBeGreaterThan(1))
    await before.stop()
    await receives(await harness.connect(), 'one')
  })

  test('does not hold up other conversations', async () => {
    const listening = await harness.connect()
    listening.failDeliveries(new AppError('unavailable', 'the disk is full'))
    harness.fake.say({ text: 'waits' })
    await until(() => expect(harness.host.clock.sleeping).toBeGreaterThan(1))
    listening.acceptDeliveries()
    harness.fake.say({ text: 'passes', channel: DISCORD_OTHER_CHANNEL })
    await receives(listening, 'passes')
  })
})

test('listen stops when it is aborted while it connects', async () => {
  const listening = listenTo(channelOn(harness.fake, harness.host), harness.host)
  await until(() => expect(harness.fake.requests).toHaveLength(1))
  await listening.stop()
  await until(() => expect(harness.fake.connected).toBe(0))
})

test('health makes no request', async () => {
  const { channel } = await harness.connect()
  const asked = harness.fake.requests.length
  for (let times = 0; times < 10; times++) channel.health?.()
  expect(harness.fake.requests).toHaveLength(asked)
})

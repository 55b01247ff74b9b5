/** What comes in over the gateway, and what becomes of it. */
import { AppError } from '@sluice/sdk'
import {
  DISCORD_BOT,
  DISCORD_CHANNEL,
  DISCORD_DIRECT,
  DISCORD_ELSEWHERE,
  DISCORD_GUILD,
  DISCORD_OTHER_CHANNEL,
  DISCORD_USER,
} from '@sluice/testkit/fakes/discord'
import { describe, expect, test } from 'vitest'
import { INTENTS } from './gateway-connection.ts'
import { channelOn, comes, discordBench, listenTo, until } from './testing.ts'

const bench = discordBench()

describe('what comes in', () => {
  test('a message of somebody is one, with where and whom to answer', async () => {
    const listening = await bench.connect()
    const id = bench.fake.say({ text: 'hello' })
    await comes(listening, 'hello')
    expect(listening.received[0]).toEqual({
      id,
      account: DISCORD_BOT,
      sender: DISCORD_USER,
      to: { to: DISCORD_CHANNEL, replyTo: id },
      text: 'hello',
      sentAtMs: bench.host.clock.nowMs(),
    })
    expect(listening.channel.health?.()).toMatchObject({ state: 'ok', lastEventAtMs: bench.host.clock.nowMs() })
  })

  test('our own messages and those of bots are none', async () => {
    const listening = await bench.connect()
    await listening.channel.send({ to: DISCORD_CHANNEL }, { text: 'mine', clientId: 'c' }, AbortSignal.timeout(4000))
    bench.fake.say({ text: 'beep', isBot: true })
    bench.fake.say({ text: 'person' })
    await comes(listening, 'person')
  })

  test('of another server nothing is heard where one is configured, and direct messages pass', async () => {
    const listening = await bench.connect({ guild_id: DISCORD_GUILD })
    bench.fake.say({ text: 'elsewhere', channel: DISCORD_ELSEWHERE })
    bench.fake.say({ text: 'directly', channel: DISCORD_DIRECT })
    await comes(listening, 'directly')
  })

  test('only the bot itself is asked about, and with the intents it needs', () => {
    expect(INTENTS).toBe(37_377)
  })

  test('an answer in the thread of a question stands in a conversation of its own, named as the question', async () => {
    const listening = await bench.connect({ mention_only: true })
    const question = await listening.channel.send(
      { to: DISCORD_CHANNEL },
      { text: 'Deploy?', clientId: 'c', topic: 'Approval: deploy' },
      AbortSignal.timeout(4000),
    )
    expect(bench.fake.threads.get(question.id)).toEqual({ name: 'Approval: deploy', parent: DISCORD_CHANNEL })
    bench.fake.say({ text: 'chatter' })
    bench.fake.say({ text: 'approve', channel: question.id })
    await comes(listening, 'approve')
    expect(listening.received[0]?.to.to).toBe(question.id)
  })

  test('a reply names the message it answers', async () => {
    const listening = await bench.connect()
    const { id } = await listening.channel.send({ to: DISCORD_CHANNEL }, { text: 'Deploy?', clientId: 'c' }, AbortSignal.timeout(4000))
    bench.fake.say({ text: 'yes', replyTo: id })
    await comes(listening, 'yes')
    expect(listening.received[0]?.inReplyTo).toBe(id)
  })

  test('a pressed button comes with its message and who pressed it, and is acknowledged once it is durable', async () => {
    const listening = await bench.connect()
    const buttons = [{ label: 'Approve', value: 'approve:1', tone: 'good' as const }]
    const { id } = await listening.channel.send(
      { to: DISCORD_CHANNEL },
      { text: 'Deploy?', clientId: 'c', buttons },
      AbortSignal.timeout(4000),
    )
    listening.refuse(new AppError('unavailable', 'the disk is full'))
    const press = bench.fake.press({ message: id, value: 'approve:1', user: '400000000000000002' })
    await until(() => expect(bench.host.clock.sleeping).toBeGreaterThan(1))
    expect(bench.fake.acknowledged).toEqual([])
    listening.keep()
    await bench.host.advance(1000)
    await until(() => expect(bench.fake.acknowledged).toEqual([press]))
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

describe('what could not be kept', () => {
  test('is tried again, in order, and nothing overtakes it', async () => {
    const listening = await bench.connect()
    listening.refuse(new AppError('unavailable', 'the disk is full'))
    for (const text of ['one', 'two', 'three']) bench.fake.say({ text })
    await until(() => expect(bench.host.clock.sleeping).toBeGreaterThan(1))
    expect(listening.texts()).toEqual([])
    listening.keep()
    await bench.host.advance(1000)
    await comes(listening, 'one', 'two', 'three')
  })

  test('is owed after a restart', async () => {
    const before = await bench.connect()
    before.refuse(new AppError('unavailable', 'the disk is full'))
    bench.fake.say({ text: 'one' })
    await until(() => expect(bench.host.clock.sleeping).toBeGreaterThan(1))
    await before.stop()
    await comes(await bench.connect(), 'one')
  })

  test('blocks no other conversation', async () => {
    const listening = await bench.connect()
    listening.refuse(new AppError('unavailable', 'the disk is full'))
    bench.fake.say({ text: 'waits' })
    await until(() => expect(bench.host.clock.sleeping).toBeGreaterThan(1))
    listening.keep()
    bench.fake.say({ text: 'passes', channel: DISCORD_OTHER_CHANNEL })
    await comes(listening, 'passes')
  })
})

test('it stops while it connects', async () => {
  const listening = listenTo(channelOn(bench.fake, bench.host))
  await until(() => expect(bench.fake.requests).toHaveLength(1))
  await listening.stop()
  await until(() => expect(bench.fake.connected).toBe(0))
})

test('health asks nobody', async () => {
  const { channel } = await bench.connect()
  const asked = bench.fake.requests.length
  for (let times = 0; times < 10; times++) channel.health?.()
  expect(bench.fake.requests).toHaveLength(asked)
})

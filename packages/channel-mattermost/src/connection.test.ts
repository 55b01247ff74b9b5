import { AppError, type Inbound } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { DELIVERED_MAX, WAITING_MAX } from './intake.ts'
import {
  MATTERMOST_BOT,
  MATTERMOST_CHANNEL,
  MATTERMOST_DIRECT,
  MATTERMOST_GROUP,
  MATTERMOST_PRIVATE,
  MATTERMOST_USER,
} from './testing/fake.ts'
import { mattermostHarness, receives, until } from './testing/harness.ts'

const harness = mattermostHarness()

test('messages of channels, private channels, groups and direct conversations arrive, and go back where they came from', async () => {
  const { fake } = harness
  const listening = await harness.connect()
  const inChannel = fake.say({ text: 'one' })
  const reply = fake.say({ text: 'two', thread: inChannel })
  const inPrivate = fake.say({ text: 'three', channel: MATTERMOST_PRIVATE })
  const inGroup = fake.say({ text: 'four', channel: MATTERMOST_GROUP })
  const direct = fake.say({ text: 'five', channel: MATTERMOST_DIRECT })
  const inDirectThread = fake.say({ text: 'six', channel: MATTERMOST_DIRECT, thread: direct })
  await until(() => expect(listening.received).toHaveLength(6))
  // Conversations have no order among each other.
  const received = listening.received.toSorted((a, b) => (a.id < b.id ? -1 : 1))
  expect(received.map(({ text }) => text)).toEqual(['one', 'two', 'three', 'four', 'five', 'six'])
  expect(received.map(({ id, to }) => [id, to])).toEqual([
    [inChannel, { to: MATTERMOST_CHANNEL, thread: inChannel }],
    [reply, { to: MATTERMOST_CHANNEL, thread: inChannel }],
    [inPrivate, { to: MATTERMOST_PRIVATE, thread: inPrivate }],
    [inGroup, { to: MATTERMOST_GROUP, thread: inGroup }],
    [direct, { to: MATTERMOST_DIRECT }],
    [inDirectThread, { to: MATTERMOST_DIRECT, thread: direct }],
  ])
})

test('messages have the name of their writer, which is looked up once', async () => {
  const { fake } = harness
  const listening = await harness.connect()
  for (const text of ['one', 'two']) fake.say({ text })
  await receives(listening, 'one', 'two')
  expect(listening.received.map(({ name }) => name)).toEqual(['Ada Lovelace', 'Ada Lovelace'])
  expect(fake.requests.filter(({ path }) => path === `/api/v4/users/${MATTERMOST_USER}`)).toHaveLength(1)
})

test('the first message of a person in a thread quotes the post that begins it', async () => {
  const { fake } = harness
  const listening = await harness.connect()
  const root = fake.say({ text: 'ticket 4711 burns', from: MATTERMOST_BOT.id })
  fake.say({ text: 'why?', thread: root })
  fake.say({ text: 'when?', thread: root })
  await receives(listening, 'why?', 'when?')
  const quoted = { id: root, author: { id: MATTERMOST_BOT.id }, by: 'bot', text: 'ticket 4711 burns' }
  expect(listening.received.map((message) => message.quoted)).toEqual([quoted, undefined])
  expect(listening.received[0]?.addressed).toBe('reply')
})

test('a post of a program is quoted without a writer, and a deleted one as a line', async () => {
  const { fake } = harness
  const listening = await harness.connect()
  const alert = fake.say({ text: 'run this', props: { from_webhook: 'true', override_username: 'alerts' } })
  const gone = fake.say({ text: 'oops', isLost: true })
  fake.delete(gone, { isLost: true })
  fake.say({ text: 'why?', thread: alert })
  // The deletion may be read with the missed posts.
  const said = () => listening.received.filter(({ changes }) => !changes)
  await expect.poll(() => said().map(({ text }) => text)).toEqual(['why?'])
  fake.say({ text: 'and this?', thread: gone })
  await expect.poll(() => said().map(({ text }) => text)).toEqual(['why?', 'and this?'])
  expect(said().map(({ quoted }) => quoted)).toEqual([
    { id: alert, author: { name: 'alerts' }, text: 'run this' },
    { id: gone, text: '[a message that could not be read]' },
  ])
})

test('the bot itself, other bots, webhooks and system messages are ignored', async () => {
  const { fake } = harness
  const listening = await harness.connect()
  fake.say({ text: 'own', from: MATTERMOST_BOT.id })
  fake.say({ text: 'bot', props: { from_bot: 'true' } })
  fake.say({ text: 'hook', props: { from_webhook: 'true' } })
  fake.say({ text: 'joined', type: 'system_join_channel' })
  fake.say({ text: ' ' })
  fake.say({ text: 'person' })
  await receives(listening, 'person')
})

test('with channel_id only that channel is accepted', async () => {
  const { fake } = harness
  const listening = await harness.connect({ channel_id: MATTERMOST_PRIVATE })
  fake.say({ text: 'elsewhere' })
  fake.say({ text: 'direct', channel: MATTERMOST_DIRECT })
  fake.say({ text: 'here', channel: MATTERMOST_PRIVATE })
  await receives(listening, 'here')
})

test('with mention_only a message needs a mention, or a thread that the bot or a mention began', async () => {
  const { fake } = harness
  const listening = await harness.connect({ mention_only: true })
  const others = fake.say({ text: 'not for it' })
  fake.say({ text: 'nor this', thread: others })
  const asked = fake.say({ text: 'hey @Sluice, look' })
  fake.say({ text: 'and then?', thread: asked })
  const { id } = await listening.channel.send({ to: MATTERMOST_CHANNEL }, { text: 'news', clientId: 'a' }, new AbortController().signal)
  fake.say({ text: 'which news?', thread: id })
  fake.say({ text: 'mail sluice@example.org' })
  fake.say({ text: 'direct', channel: MATTERMOST_DIRECT })
  await until(() => expect(listening.texts()).toHaveLength(7))
  const texts = (messages: readonly Inbound[]) => messages.map(({ text }) => text).toSorted()
  const { overheard = [], answered = [] } = Object.groupBy(listening.received, (one) => (one.overheardOnly ? 'overheard' : 'answered'))
  expect(texts(answered)).toEqual(['and then?', 'direct', 'hey , look', 'which news?'])
  expect(texts(overheard)).toEqual(['mail sluice@example.org', 'nor this', 'not for it'])
})

test('a broken connection is resumed, and the server sends the missed events', async () => {
  const { fake } = harness
  const listening = await harness.connect()
  fake.say({ text: 'before' })
  await receives(listening, 'before')
  fake.sockets.cut('reset')
  fake.say({ text: 'meanwhile' })
  await receives(listening, 'before', 'meanwhile')
  expect(fake.sockets.resumed).toBe(1)
  expect(fake.requests.filter(({ path }) => path.endsWith('/users/me'))).toHaveLength(1)
})

test('after the server forgot the connection, missed messages are read from the conversations', async () => {
  const { fake } = harness
  const listening = await harness.connect()
  fake.say({ text: 'before' })
  await receives(listening, 'before')
  fake.sockets.forgets = true
  fake.sockets.cut('reset')
  fake.say({ text: 'meanwhile' })
  await receives(listening, 'before', 'meanwhile')
  expect(fake.sockets.resumed).toBe(0)
})

test('a skipped event number makes the channel read what it missed', async () => {
  const { fake } = harness
  const listening = await harness.connect()
  fake.say({ text: 'one' })
  await receives(listening, 'one')
  fake.say({ text: 'lost', isLost: true })
  fake.sockets.skipEvent()
  fake.say({ text: 'two' })
  await receives(listening, 'one', 'lost', 'two')
})

test('a server behind a proxy that removes the header is used with a challenge', async () => {
  const { fake } = harness
  fake.sockets.losesHeader = true
  const listening = await harness.connect()
  fake.say({ text: 'one' })
  await receives(listening, 'one')
  fake.sockets.cut('close')
  fake.say({ text: 'two' })
  await receives(listening, 'one', 'two')
  expect(fake.sockets.resumed).toBe(0)
})

test('a token that is revoked while the connection is open is noticed', async () => {
  const { fake, host } = harness
  const listening = await harness.connect()
  fake.revoke()
  await host.advance(31_000)
  await until(() => expect(listening.health()).toMatchObject({ state: 'down', detail: expect.stringContaining('bot_token') }))
})

test('an address without Mattermost is shown and tried rarely', async () => {
  const { fake, host } = harness
  const isAsked = ({ path }: { readonly path: string }) => path.endsWith('/users/me')
  fake.fail({ fault: 'status', status: 404, body: { id: 'api.context.404.app_error', message: 'Not found' } }, { matches: isAsked })
  await harness.connect()
  expect(JSON.stringify(host.logs)).toContain('api.context.404.app_error')
  expect(host.clock.monotonicMs()).toBeGreaterThan(600_000)
})

test('an edit and a deletion are changes of the message, and a pin is not', async () => {
  const { fake, host } = harness
  const listening = await harness.connect()
  const id = fake.say({ text: 'on' })
  await host.advance(1000)
  fake.edit(id, 'one')
  fake.pin(id)
  fake.delete(id)
  const unedited = fake.say({ text: 'two' })
  fake.pin(unedited)
  fake.say({ text: 'three' })
  await receives(listening, 'on', 'one', '', 'two', 'three')
  expect(listening.received.slice(1, 3)).toMatchObject([
    { sender: MATTERMOST_USER, changes: { message: id, what: 'edited' } },
    { id: `delete:${id}`, sender: MATTERMOST_USER, changes: { message: id, what: 'deleted' } },
  ])
})

test('a message that the store does not take is tried again before the next', async () => {
  const { fake, host } = harness
  const listening = await harness.connect()
  let failures = 2
  listening.storeWith(async () => {
    if (failures-- > 0) throw new AppError('unavailable', 'the disk is full')
  })
  fake.say({ text: 'one' })
  fake.say({ text: 'two' })
  await until(async () => {
    await host.advance(5000)
    expect(listening.texts()).toEqual(['one', 'two'])
  })
})

test(`beyond ${WAITING_MAX} waiting events newer ones are read from the conversations`, async () => {
  const { fake, host } = harness
  const listening = await harness.connect()
  const stored = Promise.withResolvers<void>()
  listening.storeWith(() => stored.promise)
  for (let n = 0; n < WAITING_MAX + 60; n++) fake.say({ text: `${n}` })
  await until(() => expect(JSON.stringify(host.logs)).toContain('too many messages wait'))
  stored.resolve()
  await until(() => expect(new Set(listening.texts()).size).toBe(WAITING_MAX + 60))
  expect(listening.received.length - new Set(listening.texts()).size).toBeLessThanOrEqual(WAITING_MAX + 60 - DELIVERED_MAX)
})

import { memorySecrets } from '@sluice/testkit/memory-store'
import { afterEach, expect, test } from 'vitest'
import {
  FEDCHAT_BOT,
  FEDCHAT_PASSWORD,
  FEDCHAT_PEOPLE,
  FEDCHAT_ROOM,
  type FedchatFake,
  type FedchatFakeOptions,
  startFedchatFake,
} from './testing/fake.ts'
import { NEVER, soon, startTestChannel, type TestChannel } from './testing/test-channel.ts'

const [ADA, BOB, EVE] = FEDCHAT_PEOPLE
const open: { close(): Promise<unknown> }[] = []
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
})

async function arrange(
  config: object = {},
  options: FedchatFakeOptions = {},
  secrets = memorySecrets(),
): Promise<{ fake: FedchatFake; bot: TestChannel }> {
  const fake = await startFedchatFake(options)
  open.push(fake)
  const bot = startTestChannel(fake, config, { secrets })
  open.push({ close: () => bot.stop() })
  await bot.connected()
  return { fake, bot }
}

const texts = (bot: TestChannel) => bot.received.map(({ text }) => text)

test('replies quote, threads continue, and only the author is mentioned', async () => {
  const { fake, bot } = await arrange({ room_id: '#ops:example.org' })
  const id = fake.say({ text: 'hello @room' })
  await soon(() => expect(bot.received).toHaveLength(1))
  const to = bot.received[0]?.to ?? { to: '' }
  await bot.channel.send(to, { text: 'hi @room\u0007', clientId: 'c-1' }, NEVER)
  await bot.channel.send({ ...to, thread: '$root' }, { text: 'in the thread', clientId: 'c-2' }, NEVER)
  expect(fake.sent().map(({ content }) => content)).toEqual([
    { msgtype: 'm.text', body: 'hi @\u2060room', 'm.mentions': { user_ids: [ADA] }, 'm.relates_to': { 'm.in_reply_to': { event_id: id } } },
    {
      msgtype: 'm.text',
      body: 'in the thread',
      'm.mentions': { user_ids: [ADA] },
      'm.relates_to': { rel_type: 'm.thread', event_id: '$root', is_falling_back: true, 'm.in_reply_to': { event_id: id } },
    },
  ])
})

test('a message that cannot begin a thread is answered outside of one, once', async () => {
  const { fake, bot } = await arrange()
  const [first, second] = [fake.say({ text: 'hello' }), fake.say({ text: 'more', thread: '$root' })]
  await bot.channel.send({ to: FEDCHAT_ROOM, thread: first }, { text: 'in the thread', clientId: 'c-1' }, NEVER)
  const answer = () => bot.channel.send({ to: FEDCHAT_ROOM, thread: second }, { text: 'outside', clientId: 'c-2' }, NEVER)
  expect(await answer()).toEqual(await answer())
  expect(fake.sent().map(({ content }) => [content.body, (content as { 'm.relates_to'?: object })['m.relates_to'] !== undefined])).toEqual([
    ['in the thread', true],
    ['outside', false],
  ])
})

test('a repeated send has the same transaction, so the homeserver keeps one message', async () => {
  const { fake, bot } = await arrange()
  const first = await bot.channel.send({ to: FEDCHAT_ROOM }, { text: 'once', clientId: 'c-1' }, NEVER)
  expect(await bot.channel.send({ to: FEDCHAT_ROOM }, { text: 'once', clientId: 'c-1' }, NEVER)).toEqual(first)
  expect(fake.sent()).toHaveLength(1)
})

test('notices, own messages, redacted messages and other rooms are ignored', async () => {
  const { fake, bot } = await arrange()
  const other = fake.addRoom()
  fake.say({ text: 'elsewhere', room: other.id })
  fake.emit({ type: 'm.room.message', content: { msgtype: 'm.notice', body: 'I am a bot' } })
  fake.say({ text: 'mine', from: FEDCHAT_BOT })
  fake.emit({ type: 'm.room.message', content: {} })
  fake.emit({ type: 'm.room.topic', content: { topic: 'x' }, stateKey: '' })
  fake.say({ text: 'for you' })
  await soon(() => expect(texts(bot)).toEqual(['for you']))
})

test('edits and redactions are changes, and a press of a button is a reaction', async () => {
  const { fake, bot } = await arrange()
  const id = fake.say({ text: 'first' })
  fake.say({
    text: '* second',
    more: { 'm.new_content': { msgtype: 'm.text', body: 'second' }, 'm.relates_to': { rel_type: 'm.replace', event_id: id } },
  })
  await soon(() => expect(bot.received).toHaveLength(2))
  fake.redact(id, ADA)
  await soon(() => expect(bot.received).toHaveLength(3))
  expect(bot.received.slice(1)).toMatchObject([
    { text: 'second', changes: { message: id, what: 'edited' } },
    { text: '', changes: { message: id, what: 'deleted' } },
  ])
  const buttons = [
    { label: 'Approve', value: 'ok', tone: 'good' },
    { label: 'Reject', value: 'no', tone: 'bad' },
  ] as const
  const sent = await bot.channel.send({ to: FEDCHAT_ROOM }, { text: 'May I?', clientId: 'c-1', buttons }, NEVER)
  const reactions = fake.sent().filter(({ type }) => type === 'm.reaction')
  expect(reactions.map(({ content }) => content['m.relates_to'])).toEqual(
    ['✅ Approve', '❌ Reject'].map((key) => ({ rel_type: 'm.annotation', event_id: sent.id, key })),
  )
  fake.emit({ type: 'm.reaction', content: { 'm.relates_to': { rel_type: 'm.annotation', event_id: sent.id, key: '✅\ufe0f Approve' } } })
  fake.emit({ type: 'm.reaction', content: { 'm.relates_to': { rel_type: 'm.annotation', event_id: sent.id, key: '👍' } } })
  await soon(() => expect(bot.received.at(-1)).toMatchObject({ text: '', sender: ADA, pressed: { message: sent.id, value: 'ok' } }))
  await bot.channel.update?.({ to: FEDCHAT_ROOM }, sent, { text: 'Approved', clientId: 'c-1' }, NEVER)
  expect(fake.sent().filter(({ type, content }) => type === 'm.reaction' && content['m.relates_to'] !== undefined)).toEqual([])
})

test('with mention_only, mentions in groups and every message between two are answered, others overheard', async () => {
  const { fake, bot } = await arrange({ mention_only: true, allowed_rooms: ['*'] })
  fake.addRoom({ id: '!two:example.org', people: [ADA] })
  fake.say({ text: 'not for you' })
  fake.say({ text: 'sluice: by name' })
  fake.say({ text: 'by mention', more: { 'm.mentions': { user_ids: [FEDCHAT_BOT] } } })
  fake.say({ text: 'sluice: of others', more: { 'm.mentions': { user_ids: [BOB] } } })
  await soon(() => expect(texts(bot)).toEqual(['not for you', 'by name', 'by mention', 'of others']))
  fake.say({ text: 'between us', room: '!two:example.org' })
  await soon(() => expect(texts(bot).at(-1)).toBe('between us'))
  expect(bot.received.map(({ overheardOnly = false }) => overheardOnly)).toEqual([true, false, false, true, false])
})

test('invitations are accepted to configured rooms from allowed users only', async () => {
  const { fake, bot } = await arrange({ allowed_users: [ADA], allowed_rooms: ['*'] })
  const wanted = fake.addRoom({ hasBot: false })
  const foreign = fake.addRoom({ hasBot: false, people: [EVE] })
  fake.say({ text: 'before the bot came', room: wanted.id })
  fake.invite(foreign, FEDCHAT_BOT, EVE)
  fake.invite(wanted, FEDCHAT_BOT, ADA)
  const { rooms } = fake.state
  await soon(() => expect([wanted, foreign].map((room) => rooms.membership(room, FEDCHAT_BOT))).toEqual(['join', 'leave']))
  fake.say({ text: 'welcome', room: wanted.id })
  await soon(() => expect(texts(bot)).toEqual(['welcome']))
})

test('the health names a room that the bot cannot enter, until it is invited', async () => {
  const fake = await startFedchatFake()
  open.push(fake)
  const room = fake.addRoom({ hasBot: false })
  const bot = startTestChannel(fake, { allowed_rooms: [room.id] })
  open.push({ close: () => bot.stop() })
  await soon(() =>
    expect(bot.listening.health).toMatchObject({ state: 'down', detail: expect.stringContaining(`not in the room ${room.id}`) }),
  )
  fake.invite(room)
  await soon(() => expect(bot.listening.health.state).toBe('ok'))
})

test('a gap in the timeline is read page by page, in order, after an interruption', async () => {
  const { fake, bot } = await arrange()
  fake.say({ text: 'first' })
  await soon(() => expect(bot.received).toHaveLength(1))
  fake.cut({ isDown: true })
  const missed = Array.from({ length: 350 }, (_, at) => `missed ${at}`)
  for (const text of missed) fake.say({ text })
  await soon(() => expect(bot.listening.retryAtMs).toBeDefined())
  fake.cut()
  await bot.host.advance(60_000)
  await soon(() => expect(texts(bot)).toEqual(['first', ...missed]))
  expect(fake.requests.filter(({ path }) => path.endsWith('/messages'))).toHaveLength(3)
})

test('a device that the account has not signed is warned about once, and not at each connection', async () => {
  const { fake, bot } = await arrange()
  fake.cut({ isDown: true })
  await soon(() => expect(bot.listening.retryAtMs).toBeDefined())
  fake.cut()
  await bot.host.advance(60_000)
  fake.say({ text: 'again' })
  await soon(() => expect(texts(bot)).toEqual(['again']))
  expect(bot.host.logs.filter(({ message }) => message.includes('the device is not verified'))).toHaveLength(1)
})

test('messages are delivered again when they could not be stored, and the position is stored after them', async () => {
  const secrets = memorySecrets()
  const { fake, bot } = await arrange({}, {}, secrets)
  const before = await secrets.get('state/position')
  let isBroken = true
  bot.storeWith(async () => {
    if (isBroken) throw new Error('the disk is full')
  })
  fake.say({ text: 'hello' })
  await soon(() => expect(bot.listening.retryAtMs).toBeDefined())
  expect(JSON.parse((await secrets.get('state/position')) ?? '{}').token).toBe(JSON.parse(before ?? '{}').token)
  isBroken = false
  await bot.host.advance(60_000)
  await soon(() => expect(texts(bot)).toEqual(['hello']))
})

test('the bot logs in with its password, and again after a soft logout, with the same device', async () => {
  const secrets = memorySecrets()
  const { fake, bot } = await arrange({ access_token: undefined, user_id: FEDCHAT_BOT, password: FEDCHAT_PASSWORD }, {}, secrets)
  const { devices } = fake.state.accounts.user(FEDCHAT_BOT)
  const [, device] = [...devices.values()]
  if (!device) throw new Error('The bot has no device')
  const keys = await bot.run('fedchat keys')
  fake.state.accounts.logOut(device, true)
  fake.state.announce()
  await soon(() => expect(bot.listening.retryAtMs).toBeDefined())
  await bot.host.advance(60_000)
  await bot.connected()
  fake.say({ text: 'are you back?' })
  await soon(() => expect(texts(bot)).toEqual(['are you back?']))
  expect(await bot.run('fedchat keys')).toBe(keys)
  expect(devices.size).toBe(2)
})

test('an invalid token names the cure and is not tried often', async () => {
  const fake = await startFedchatFake()
  open.push(fake)
  const bot = startTestChannel(fake, { access_token: 'another-token-0123456789' })
  open.push({ close: () => bot.stop() })
  await soon(() => expect(bot.listening.health).toMatchObject({ state: 'down', detail: expect.stringContaining('access_token') }))
  expect(JSON.stringify(bot.host.logs)).not.toContain('another-token-0123456789')
})

test('files go both ways without encryption, and a file that is too large is refused', async () => {
  const { fake, bot } = await arrange()
  const bytes = Buffer.from('an answer')
  await bot.channel.send(
    { to: FEDCHAT_ROOM },
    { text: 'see the file', clientId: 'c-1', attachments: [{ kind: 'image', name: 'a.png', mime: 'image/png', source: { bytes } }] },
    NEVER,
  )
  const [, event] = fake.sent()
  expect(event?.content).toMatchObject({
    msgtype: 'm.image',
    body: 'a.png',
    info: { size: 9, mimetype: 'image/png' },
    url: 'mxc://example.org/media1',
  })
  fake.emit({
    type: 'm.room.message',
    content: {
      msgtype: 'm.audio',
      body: 'voice.ogg',
      'org.matrix.msc3245.voice': {},
      url: event?.content.url,
      info: { mimetype: 'audio/ogg' },
    },
  })
  await soon(() => expect(bot.received).toHaveLength(1))
  const [attachment] = bot.received[0]?.attachments ?? []
  expect(attachment).toMatchObject({ kind: 'audio', name: 'voice.ogg', mime: 'audio/ogg' })
  const fetched = attachment && (await bot.channel.fetchMedia?.(attachment, { bytesMax: 9, signal: NEVER }))
  expect(Buffer.from(fetched?.bytes ?? []).toString()).toBe('an answer')
  await expect(bot.channel.fetchMedia?.(attachment ?? (null as never), { bytesMax: 8, signal: NEVER })).rejects.toMatchObject({
    code: 'too_large',
  })
})

test.each([400, 404] as const)(
  'files of a homeserver that answers unknown addresses with %i are fetched from the older address',
  async (unknownStatus) => {
    const { fake, bot } = await arrange({}, { hasOldMediaOnly: true, unknownStatus })
    const attachments = [{ kind: 'image', name: 'a.png', mime: 'image/png', source: { bytes: Buffer.from('an answer') } }] as const
    await bot.channel.send({ to: FEDCHAT_ROOM }, { text: 'see the file', clientId: 'c-1', attachments }, NEVER)
    const url = fake.sent().at(-1)?.content.url
    fake.emit({ type: 'm.room.message', content: { msgtype: 'm.image', body: 'a.png', url, info: { mimetype: 'image/png' } } })
    await soon(() => expect(bot.received).toHaveLength(1))
    const [attachment] = bot.received[0]?.attachments ?? []
    const fetched = attachment && (await bot.channel.fetchMedia?.(attachment, { bytesMax: 9, signal: NEVER }))
    expect(Buffer.from(fetched?.bytes ?? []).toString()).toBe('an answer')
  },
)

test('multi_message sends each paragraph as a message, and code blocks as a whole', async () => {
  const { fake, bot } = await arrange({ stream_mode: 'multi_message', multi_message_delay_ms: 0 })
  await bot.channel.send({ to: FEDCHAT_ROOM }, { text: 'One.\n\nTwo:\n```\na\n\nb\n```\n\nThree.', clientId: 'c-1' }, NEVER)
  expect(fake.sent().map(({ content }) => content.body)).toEqual(['One.', 'Two:\n```\na\n\nb\n```', 'Three.'])
})

test('limits of the homeserver are reported with their delay', async () => {
  const { fake, bot } = await arrange()
  const body = { errcode: 'M_LIMIT_EXCEEDED', error: 'Too many requests', retry_after_ms: 6400 }
  fake.fail({ fault: 'status', status: 429, body }, { matches: ({ path }) => path.includes('/send/') })
  await expect(bot.channel.send({ to: FEDCHAT_ROOM }, { text: 'x', clientId: 'c' }, NEVER)).rejects.toMatchObject({
    code: 'rate_limited',
    retryAfterSecs: 7,
  })
  expect(fake.sent()).toEqual([])
})

test('typing and receipts are shown', async () => {
  const { fake, bot } = await arrange({ allowed_users: [ADA] })
  fake.say({ text: 'from a stranger', from: EVE })
  const id = fake.say({ text: 'hello' })
  await bot.channel.typing?.({ to: FEDCHAT_ROOM }, NEVER)
  expect(fake.state.typing).toMatchObject([{ userId: FEDCHAT_BOT, isTyping: true }])
  await soon(() => expect(fake.state.receipts).toEqual([{ room: FEDCHAT_ROOM, userId: FEDCHAT_BOT, event: id }]))
})

test('no id in an address changes the path of a request', async () => {
  const { fake, bot } = await arrange()
  for (const to of ['..', 'a/../..', '?a']) await bot.channel.send({ to }, { text: 'x', clientId: 'c' }, NEVER).catch(() => undefined)
  expect(fake.requests.map(({ path }) => path).filter((path) => path.includes('/../'))).toEqual([])
  expect(fake.sent()).toEqual([])
})

/**
 * The platform's own SDK as a counterpart: its client and its long connection work with the fake, which therefore speaks the platform's
 * formats, and its dispatcher decrypts and verifies the requests that the tests of the webhook use.
 */
import { AESCipher, Client, EventDispatcher, LoggerLevel, WSClient } from '@larksuiteoapi/node-sdk'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { cardOf } from './card.ts'
import { CONTROL, DATA, decodeFrame, encodeFrame } from './frame.ts'
import {
  startWorkchatFake,
  textIn,
  WORKCHAT_APP_ID,
  WORKCHAT_APP_SECRET,
  WORKCHAT_BOT,
  WORKCHAT_ENCRYPT_KEY,
  type WorkchatFake,
} from './testing/fake.ts'
import { workchatEncrypted, workchatSignature } from './testing/signed.ts'
import { soon } from './testing/test-channel.ts'
import { WORKCHAT_CHALLENGE } from './testing/vectors.ts'
import { createWebhook } from './webhook.ts'

const NOW_MS = Date.UTC(2026, 0, 1)
const silent = { fatal() {}, error() {}, warn() {}, info() {}, debug() {}, trace() {} }
const logging = { logger: silent, loggerLevel: LoggerLevel.fatal }
let fake: WorkchatFake

interface Pressed {
  readonly action: { readonly value: object }
  readonly context: { readonly open_message_id: string }
}
beforeEach(async () => {
  fake = await startWorkchatFake({ partBytes: 100, againMs: [100, 100] })
})
afterEach(() => fake.close())

/** The clients of the SDK share their tokens unless each has a cache of its own. */
function cache() {
  const values = new Map<string | object | symbol, unknown>()
  return {
    get: async (key: string | object | symbol) => values.get(key),
    set: async (key: string | object | symbol, value: unknown) => Boolean(values.set(key, value)),
  }
}
const credentials = () => ({ appId: WORKCHAT_APP_ID, appSecret: WORKCHAT_APP_SECRET, domain: fake.url, cache: cache(), ...logging })

describe('the client of the SDK', () => {
  test('gets a token, sends a card, answers it, edits it and reads the history', async () => {
    const client = new Client(credentials())
    const content = (said: string) => JSON.stringify({ schema: '2.0', body: { elements: [{ tag: 'markdown', content: said }] } })
    const data = { receive_id: 'oc_ada', msg_type: 'interactive', content: content('one'), uuid: 'u-1' }
    const sent = await client.im.v1.message.create({ params: { receive_id_type: 'chat_id' }, data })
    expect(sent).toMatchObject({ code: 0, data: { message_id: expect.stringMatching(/^om_/) } })
    const id = sent.data?.message_id ?? ''
    const repeated = await client.im.v1.message.create({ params: { receive_id_type: 'chat_id' }, data })
    expect(repeated.data?.message_id).toBe(id)
    await client.im.v1.message.patch({ path: { message_id: id }, data: { content: content('two') } })
    await client.im.v1.message.reply({
      path: { message_id: id },
      data: { msg_type: 'text', content: '{"text":"three"}', reply_in_thread: true },
    })
    expect(fake.sent().map(textIn)).toEqual(['two', 'three'])
    const thread = fake.sent()[1]?.thread_id ?? ''
    const history = await client.im.v1.message.list({
      params: { container_id_type: 'thread', container_id: thread, sort_type: 'ByCreateTimeDesc' },
    })
    expect(history.data?.items?.map((item) => item.body?.content)).toEqual(['{"text":"three"}', content('two')])
    await client.im.v1.messageReaction.create({ path: { message_id: id }, data: { reaction_type: { emoji_type: 'OK' } } })
    expect(fake.reactions).toEqual([{ message: id, emoji: 'OK' }])
  })

  test('uploads a picture and a file, and downloads the file of a message', async () => {
    const client = new Client(credentials())
    const image = await client.im.v1.image.create({ data: { image_type: 'message', image: Buffer.from('a picture') } })
    const file = await client.im.v1.file.create({ data: { file_type: 'pdf', file_name: 'a.pdf', file: Buffer.from('a file') } })
    expect([image?.image_key, file?.file_key]).toEqual([expect.stringMatching(/^img_/), expect.stringMatching(/^file_/)])
    const key = file?.file_key ?? ''
    const message = fake.say({ type: 'file', content: { file_key: key, file_name: 'a.pdf' }, isLost: true })
    const resource = await client.im.v1.messageResource.get({ path: { message_id: message, file_key: key }, params: { type: 'file' } })
    const chunks: Buffer[] = []
    for await (const chunk of resource.getReadableStream()) chunks.push(chunk as Buffer)
    expect(chunks.map(String).join('')).toBe('a file')
  })

  test('is refused as the channel is', async () => {
    const client = new Client(credentials())
    const data = { receive_id: 'oc_nowhere', msg_type: 'text', content: '{"text":"x"}' }
    await expect(client.im.v1.message.create({ params: { receive_id_type: 'chat_id' }, data })).rejects.toMatchObject({
      response: { status: 400, data: { code: 230002 } },
    })
  })
})

describe('the long connection of the SDK', () => {
  test('gets events in several parts and button presses, acknowledges them, and sends pings', async () => {
    const seen: unknown[] = []
    const dispatcher = new EventDispatcher(logging).register({
      'im.message.receive_v1': async ({ message, sender }) => void seen.push([message.content, sender.sender_id?.open_id]),
      'im.message.recalled_v1': async ({ message_id }) => void seen.push(message_id),
      'card.action.trigger': async ({ action, context }: Pressed) => void seen.push([action.value, context.open_message_id]),
    })
    const client = new WSClient(credentials())
    await client.start({ eventDispatcher: dispatcher })
    await soon(() => expect(fake.socket.open).toBe(1))
    const { content } = cardOf({ text: 'Approve?', buttons: [{ label: 'Yes', value: 'yes', tone: 'good' }] }, 'om_root') ?? { content: '' }
    const data = { receive_id: 'oc_ada', msg_type: 'interactive', content }
    const question = await new Client(credentials()).im.v1.message.create({ params: { receive_id_type: 'chat_id' }, data })
    const asked = question.data?.message_id ?? ''
    const id = fake.say({ text: 'hello 😀, in several parts' })
    fake.recall(id)
    fake.press({ message: asked, value: 'yes' })
    await soon(() => expect(fake.socket.acknowledged).toHaveLength(3))
    expect(seen).toEqual([['{"text":"hello 😀, in several parts"}', 'ou_ada'], id, [{ value: 'yes', thread: 'om_root' }, asked]])
    expect(fake.socket.pings).toBe(1)
    client.close({ force: true })
  })

  test('asks for an event again that its handler could not take', async () => {
    let tries = 0
    const dispatcher = new EventDispatcher(logging).register({
      'im.message.receive_v1': async () => {
        tries += 1
        if (tries === 1) throw new Error('not yet')
      },
    })
    const client = new WSClient(credentials())
    await client.start({ eventDispatcher: dispatcher })
    await soon(() => expect(fake.socket.open).toBe(1))
    fake.say({ text: 'x' })
    await soon(() => expect(fake.socket.codes).toEqual([500, 200]))
    client.close({ force: true })
  })
})

describe('requests of webhooks', () => {
  const webhook = createWebhook({ path: '/workchat', appId: WORKCHAT_APP_ID, encryptKey: WORKCHAT_ENCRYPT_KEY })
  const signed = (body: string) => {
    const headers = workchatSignature(body, { encryptKey: WORKCHAT_ENCRYPT_KEY, atMs: NOW_MS })
    return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  }
  const rawOf = (body: string, headers: Readonly<Record<string, string>>) => ({
    headers,
    url: new URL('http://localhost/workchat'),
    body: Buffer.from(body),
    receivedAtMs: NOW_MS,
  })
  /** The dispatcher of the SDK, as its adapters for HTTP servers call it. */
  const dispatch = async (body: string, headers: Readonly<Record<string, string>>) => {
    const seen: string[] = []
    const dispatcher = new EventDispatcher({ encryptKey: WORKCHAT_ENCRYPT_KEY, ...logging }).register({
      'im.message.receive_v1': async ({ message }) => void seen.push(message.message_id),
    })
    await dispatcher.invoke(Object.assign(Object.create({ headers }), JSON.parse(body)))
    return seen
  }

  test('that the tests make are verified and decrypted by the SDK and by the channel', async () => {
    const event = JSON.stringify(fake.eventOf(fake.say({ text: 'secret 漢字', isLost: true })))
    const body = workchatEncrypted(event, WORKCHAT_ENCRYPT_KEY)
    const [message] = await webhook.parse(rawOf(body, signed(body)))
    expect(webhook.verify(rawOf(body, signed(body)))).toEqual({ by: 'x-lark-signature' })
    expect(message?.text).toBe('secret 漢字')
    expect(await dispatch(body, signed(body))).toEqual([message?.id])
    const other = { ...signed(body), 'x-lark-request-nonce': 'another' }
    expect(await dispatch(body, other)).toEqual([])
    expect(() => webhook.verify(rawOf(body, other))).toThrow('Invalid signature')
  })

  test('that the channel makes for operators are verified and decrypted by the SDK', async () => {
    const { body, headers } = webhook.sample({ sender: 'ou_ada', text: 'a sample', id: 'om_sample', atMs: NOW_MS })
    expect(await dispatch(body, headers)).toEqual(['om_sample'])
  })

  test('the challenge of the reference is decrypted by the SDK and by the channel', async () => {
    const plain = new AESCipher(WORKCHAT_ENCRYPT_KEY).decrypt(WORKCHAT_CHALLENGE)
    expect(JSON.parse(plain)).toEqual({ challenge: 'ch-1', token: 'tok-1', type: 'url_verification' })
    const answer = await webhook.answer?.(rawOf(JSON.stringify({ encrypt: WORKCHAT_CHALLENGE }), {}))
    expect(await answer?.json()).toEqual({ challenge: 'ch-1' })
  })
})

test('the id of the bot is the one that messages mention', async () => {
  const client = new Client(credentials())
  expect(await client.request({ method: 'GET', url: '/open-apis/bot/v3/info' })).toMatchObject({ bot: { open_id: WORKCHAT_BOT } })
})

test('both kinds of frames are what the codec reads and writes', () => {
  for (const method of [CONTROL, DATA]) {
    const frame = { seqId: 1n, logId: 2n, service: 3, method, headers: [{ key: 'type', value: 'ping' }], payload: Buffer.from('{}') }
    expect(decodeFrame(encodeFrame(frame))).toEqual(frame)
  }
})

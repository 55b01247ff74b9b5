import { createHmac } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ROOMCHAT_APP_TOKEN, ROOMCHAT_SECRET, type RoomchatFake, startRoomchatFake } from './fake.ts'

const RANDOM = '00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff'

let fake: RoomchatFake
beforeEach(async () => {
  fake = await startRoomchatFake()
})
afterEach(() => fake.close())

const signature = (signed: string) => createHmac('sha256', ROOMCHAT_SECRET).update(RANDOM).update(signed).digest('hex')
const post = async (path: string, body: object, headers: Record<string, string | null>) => {
  const all = new Headers({ 'content-type': 'application/json', 'ocs-apirequest': 'true' })
  for (const [name, value] of Object.entries(headers)) {
    if (value === null) all.delete(name)
    else all.set(name, value)
  }
  const response = await fetch(`${fake.url}/ocs/v2.php/apps/spreed/api/v1/${path}`, {
    method: 'POST',
    headers: all,
    body: JSON.stringify(body),
  })
  return { status: response.status, body: (await response.json()) as { ocs: { meta: object; data: unknown } } }
}
interface Message {
  readonly message: string
  readonly replyTo?: number
  readonly referenceId?: string
  readonly silent?: boolean
}
const asBot = (body: Message, headers: Record<string, string | null> = {}, room = 'ops4room') =>
  post(`bot/${room}/message`, body, {
    'x-nextcloud-talk-bot-random': RANDOM,
    'x-nextcloud-talk-bot-signature': signature(body.message),
    ...headers,
  })
const asUser = (body: Message, headers: Record<string, string> = {}, room = 'ops4room') =>
  post(`chat/${room}`, body, { authorization: `Bearer ${ROOMCHAT_APP_TOKEN}`, ...headers })

describe('the bot interface', () => {
  test('accepts a message signed over its text and returns no id', async () => {
    const answer = await asBot({ message: 'hello room', referenceId: 'a'.repeat(64), silent: true })
    expect([answer.status, answer.body.ocs.data]).toEqual([201, null])
    expect(fake.sent).toEqual([{ id: 4711, room: 'ops4room', by: 'bot', text: 'hello room', referenceId: 'a'.repeat(64), silent: true }])
  })

  test('a signature over the JSON around the text is 401', async () => {
    const wrong = '3c6d1b45d0fe3e81cd3593ca101ac18f64723337d1c981cfa28dd014a534c92a'
    expect(wrong).toBe(signature('{"message":"hello room"}'))
    expect((await asBot({ message: 'hello room' }, { 'x-nextcloud-talk-bot-signature': wrong })).status).toBe(401)
    expect(fake.sent).toEqual([])
  })

  test('missing parts are 400, a room without the bot 401, no API header 412', async () => {
    expect((await asBot({ message: ' ' })).status).toBe(400)
    expect((await asBot({ message: 'x' }, { 'x-nextcloud-talk-bot-random': 'short' })).status).toBe(400)
    expect((await asBot({ message: 'x' }, { 'x-nextcloud-talk-bot-signature': null })).status).toBe(400)
    expect((await asBot({ message: 'x' }, { 'content-type': 'text/plain' })).status).toBe(400)
    expect((await asBot({ message: 'x' }, {}, 'other')).status).toBe(401)
    expect((await asBot({ message: 'x' }, { 'ocs-apirequest': null })).status).toBe(412)
    expect(fake.sent).toEqual([])
  })

  test('after many wrong signatures every request is 429', async () => {
    for (let tries = 0; tries < 10; tries++) {
      expect((await asBot({ message: 'x' }, { 'x-nextcloud-talk-bot-signature': signature('y') })).status).toBe(401)
    }
    expect((await asBot({ message: 'x' })).status).toBe(429)
  })

  test('accepts 32,000 characters and refuses one more with 413', async () => {
    expect((await asBot({ message: '😀'.repeat(32_000) })).status).toBe(201)
    expect((await asBot({ message: 'x'.repeat(32_001) })).status).toBe(413)
  })

  test('quotes a message of the same room and refuses any other with 400', async () => {
    const { id } = fake.write({ text: 'a question' })
    const elsewhere = fake.write({ text: 'another', room: 'other' })
    expect((await asBot({ message: 'x', replyTo: id })).status).toBe(201)
    expect(fake.sent.at(-1)?.replyTo).toBe(id)
    fake.remove(id)
    for (const replyTo of [id, elsewhere.id, 999]) expect((await asBot({ message: 'x', replyTo })).status).toBe(400)
  })
})

describe('the chat interface', () => {
  test('requires a bearer token and returns the message', async () => {
    expect((await asUser({ message: 'x' }, { authorization: 'Bearer wrong' })).status).toBe(401)
    expect((await asUser({ message: 'x' }, {}, 'other')).status).toBe(404)
    const answer = await asUser({ message: 'hello' })
    expect([answer.status, answer.body.ocs.data]).toEqual([201, expect.objectContaining({ id: 4711, token: 'ops4room' })])
    expect(fake.sent).toMatchObject([{ by: 'user', text: 'hello' }])
  })
})

test('a user message is signed over a random value and the body', () => {
  const { headers, body, id } = fake.write({ text: 'né', actor: 'guests/1f' })
  const random = headers['x-nextcloud-talk-random'] ?? ''
  expect(random).toMatch(/^[A-Za-z0-9+/]{64}$/)
  expect(headers['x-nextcloud-talk-signature']).toBe(
    createHmac('sha256', ROOMCHAT_SECRET)
      .update(random + body)
      .digest('hex'),
  )
  expect(JSON.parse(body)).toMatchObject({ actor: { id: 'guests/1f' }, object: { id: String(id) }, target: { id: 'ops4room' } })
})

test('after a change only the new credentials are valid', async () => {
  fake.change({ secret: 'another secret', appToken: 'another token' })
  expect((await asBot({ message: 'x' })).status).toBe(401)
  expect((await asUser({ message: 'x' })).status).toBe(401)
  expect((await asUser({ message: 'x' }, { authorization: `Bearer ${fake.appToken}` })).status).toBe(201)
})

test('any other request is 404', async () => {
  expect((await post('bot/ops4room/poll/1', {}, {})).status).toBe(404)
  expect((await fetch(`${fake.url}/ocs/v2.php/apps/spreed/api/v1/chat/ops4room`)).status).toBe(404)
})

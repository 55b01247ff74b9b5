import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { SLACK_APP_TOKEN, SLACK_BOT, SLACK_BOT_TOKEN, type SlackFake, startSlackFake } from './fake.ts'
import { soon } from './test-channel.ts'

let fake: SlackFake
beforeEach(async () => {
  fake = await startSlackFake({ ackMs: 20 })
})
afterEach(() => fake.close())

type Answer = Readonly<Record<string, unknown>>
async function call(method: string, args: Record<string, string> = {}, token: string | null = SLACK_BOT_TOKEN): Promise<Answer> {
  const headers: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` }
  const response = await fetch(`${fake.apiUrl}${method}`, { method: 'POST', headers, body: new URLSearchParams(args) })
  expect(response.status).toBe(200)
  return (await response.json()) as Answer
}
const refused = async (...args: Parameters<typeof call>) => (await call(...args)).error

interface Frame {
  readonly type: string
  readonly envelope_id?: string
  readonly retry_attempt?: number
}
async function connect(): Promise<{ readonly socket: WebSocket; readonly frames: readonly Frame[] }> {
  const { url } = await call('apps.connections.open', {}, SLACK_APP_TOKEN)
  const socket = new WebSocket(String(url))
  const frames: Frame[] = []
  socket.on('message', (data) => frames.push(JSON.parse(String(data)) as Frame))
  await soon(() => expect(frames[0]?.type).toBe('hello'))
  return { socket, frames }
}

test('each method accepts only its own kind of token', async () => {
  expect(await call('auth.test')).toMatchObject({ ok: true, user_id: SLACK_BOT.user })
  expect(await refused('auth.test', {}, null)).toBe('not_authed')
  expect(await refused('auth.test', {}, 'xoxb-wrong')).toBe('invalid_auth')
  expect(await refused('auth.test', {}, SLACK_APP_TOKEN)).toBe('not_allowed_token_type')
  expect(await refused('apps.connections.open')).toBe('not_allowed_token_type')
  expect(await refused('chat.postNothing')).toBe('unknown_method')
})

test('methods without JSON support ignore a JSON body', async () => {
  const headers = { authorization: `Bearer ${SLACK_BOT_TOKEN}`, 'content-type': 'application/json' }
  const post = async (method: string, body: object) =>
    (await fetch(`${fake.apiUrl}${method}`, { method: 'POST', headers, body: JSON.stringify(body) })).json()
  expect(await post('conversations.history', { channel: 'C1' })).toEqual({ ok: false, error: 'channel_not_found' })
  expect(await post('chat.postMessage', { channel: 'C1', text: 'x' })).toMatchObject({ ok: true })
})

describe('a message', () => {
  const section = (text: string) => ({ type: 'section', text: { type: 'mrkdwn', text } })
  const button = { type: 'button', action_id: 'a', value: 'v', text: { type: 'plain_text', text: 'OK' } }

  test.each([
    ['a section too long', [section('x'.repeat(3001))]],
    ['too many blocks', Array.from({ length: 51 }, () => section('x'))],
    ['two buttons with one id', [{ type: 'actions', elements: [button, button] }]],
    ['a button of an unknown style', [{ type: 'actions', elements: [{ ...button, style: 'loud' }] }]],
    ['a block of an unknown type', [{ type: 'hologram' }]],
  ])('with %s is refused', async (_name, blocks) => {
    expect(await refused('chat.postMessage', { channel: 'C1', text: 'x', blocks: JSON.stringify(blocks) })).toBe('invalid_blocks')
  })

  test('can be edited only by its author, up to the length of an edit', async () => {
    const ts = fake.say({ text: 'a user’s message' })
    expect(await refused('chat.update', { channel: 'C1', ts, text: 'x' })).toBe('cant_update_message')
    const { ts: own } = await call('chat.postMessage', { channel: 'C1', text: 'x'.repeat(4001) })
    expect(await refused('chat.update', { channel: 'C1', ts: String(own), text: 'x'.repeat(4001) })).toBe('msg_too_long')
  })
})

describe('an envelope', () => {
  test('is sent four times without an acknowledgement, with its attempt number', async () => {
    const { socket, frames } = await connect()
    fake.say({ text: 'x' })
    await soon(() => expect(frames.map(({ retry_attempt }) => retry_attempt)).toEqual([undefined, 0, 1, 2, 3]))
    socket.terminate()
  })

  test('is not repeated after its acknowledgement', async () => {
    const { socket, frames } = await connect()
    fake.say({ text: 'x' })
    const [first] = fake.socket.delivered
    const attempts = (isFirst: boolean) => fake.socket.delivered.filter(({ id }) => (id === first?.id) === isFirst).length
    socket.on('message', () => {
      const last = frames.at(-1)
      if (last?.envelope_id === first?.id && last?.retry_attempt === 1) socket.send(JSON.stringify({ envelope_id: first?.id }))
    })
    await soon(() => expect(fake.socket.acknowledged).toHaveLength(1))
    const before = attempts(true)
    // The repeats of another envelope take longer than the next repeat of this one would.
    fake.say({ text: 'y' })
    await soon(() => expect(attempts(false)).toBe(4))
    expect(attempts(true)).toBe(before)
    socket.terminate()
  })
})

test('a ticket can be used once', async () => {
  const { url } = await call('apps.connections.open', {}, SLACK_APP_TOKEN)
  const [first, second] = [new WebSocket(String(url)), new WebSocket(String(url))]
  const outcomes = await Promise.allSettled(
    [first, second].map((socket) => new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))),
  )
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
})

test('an upload can be shared once its bytes are complete', async () => {
  const { file_id, upload_url } = await call('files.getUploadURLExternal', { filename: 'a.txt', length: '3' })
  const files = JSON.stringify([{ id: file_id }])
  expect(await refused('files.completeUploadExternal', { files, channel_id: 'C1' })).toBe('file_not_found')
  expect((await fetch(String(upload_url), { method: 'POST', body: 'four' })).status).toBe(400)
  expect(await (await fetch(String(upload_url), { method: 'POST', body: 'abc' })).text()).toBe('OK - 3')
  expect(await call('files.completeUploadExternal', { files, channel_id: 'C1' })).toMatchObject({ ok: true })
  expect(fake.messages()).toMatchObject([{ files: [{ name: 'a.txt' }] }])
})

test('a missing button cannot be pressed', () => {
  expect(() => fake.press({ message: fake.say({ text: 'x' }), value: 'approve' })).toThrow('no button approve')
})

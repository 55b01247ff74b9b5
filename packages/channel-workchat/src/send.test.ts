import { readFileSync } from 'node:fs'
import type { Address, Outbound } from '@sluice/sdk'
import { abortedOnArrival, type ProviderRequest } from '@sluice/testkit/fake-provider'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { uuidOf } from './send.ts'
import { buttonsOf, startWorkchatFake, textIn, type WorkchatFake } from './testing/fake.ts'
import { createTestChannel, type TestChannel } from './testing/test-channel.ts'

let fake: WorkchatFake
let bot: TestChannel
beforeEach(async () => {
  fake = await startWorkchatFake()
  bot = createTestChannel(fake)
})
afterEach(() => fake.close())

const { signal } = new AbortController()
const send = (to: Address, message: Partial<Outbound> = {}) =>
  bot.channel.send(to, { text: 'hello', clientId: 'client-1', ...message }, signal)
const isPost = ({ method, path }: ProviderRequest): boolean => method === 'POST' && path.startsWith('/open-apis/im/v1/messages')

describe('a message', () => {
  test('goes to a conversation as a card with Markdown', async () => {
    const { id } = await send({ to: 'oc_ada' }, { text: '**bold**\n- item' })
    expect(fake.sent('oc_ada')).toMatchObject([{ message_id: id, msg_type: 'interactive' }])
    expect(fake.sent().map(textIn)).toEqual(['**bold**\n- item'])
  })

  test('quotes the message that it answers, and opens no thread', async () => {
    const asked = fake.say({ text: 'why?', chat: 'oc_team', isLost: true })
    await send({ to: 'oc_team', replyTo: asked })
    expect(fake.sent()).toMatchObject([{ parent_id: asked, chat_id: 'oc_team' }])
    expect(fake.sent()[0]?.thread_id).toBeUndefined()
  })

  test('goes into a thread, also without a message to quote', async () => {
    const root = fake.say({ text: 'why?', chat: 'oc_team', isLost: true })
    await send({ to: 'oc_team', thread: root, replyTo: root })
    await send({ to: 'oc_team', thread: root }, { clientId: 'client-2' })
    const [one, two] = fake.sent()
    expect([one?.thread_id, one?.root_id, two?.root_id]).toEqual([two?.thread_id, root, root])
    expect(one?.thread_id).toMatch(/^omt_/)
  })

  test('that answers a recalled message is sent without the quote, and in a thread to its beginning', async () => {
    const [root, asked] = [fake.say({ chat: 'oc_team', text: 'a', isLost: true }), fake.say({ chat: 'oc_team', text: 'b', isLost: true })]
    fake.recall(asked)
    await send({ to: 'oc_team', replyTo: asked })
    await send({ to: 'oc_team', thread: root, replyTo: asked }, { clientId: 'client-2' })
    expect(fake.sent().map(({ parent_id }) => parent_id)).toEqual([undefined, root])
    fake.recall(root)
    await send({ to: 'oc_team', thread: root, replyTo: asked }, { clientId: 'client-3' })
    expect(fake.sent()[2]?.parent_id).toBeUndefined()
  })

  test('has no mentions, and a link in the place of a picture', async () => {
    await send(
      { to: 'oc_team' },
      { text: '<at id=all></at> <AT id="ou_1">x</AT> </at> <person id="ou_1"> ![cat](https://x.example/c.png) a![b' },
    )
    const [text = ''] = fake.sent().map(textIn)
    expect(text).not.toMatch(/<\/?(?:at|person)/i)
    expect(text).toContain('[cat](https://x.example/c.png) a![b')
    expect(text.replaceAll('\u200B', '')).toContain('<at id=all></at>')
  })

  test('that is too large for a card is sent as plain text', async () => {
    const text = '"\\\n'.repeat(9000)
    await send({ to: 'oc_ada' }, { text })
    expect(fake.sent()).toMatchObject([{ msg_type: 'text' }])
    expect(fake.sent().map(textIn)).toEqual([text])
    await expect(bot.channel.update?.({ to: 'oc_ada' }, { id: 'om_1' }, { text, clientId: 'c' }, signal)).rejects.toMatchObject({
      code: 'invalid_request',
    })
  })

  test('of which the platform can make no card is sent as plain text', async () => {
    const body = { code: 230099, msg: 'Failed to create card content, ext=ErrCode: 11310' }
    fake.fail({ fault: 'status', status: 400, body }, { matches: isPost })
    await send({ to: 'oc_ada' }, { text: 'a | table' })
    expect(fake.sent()).toMatchObject([{ msg_type: 'text' }])
  })

  test('has buttons that return their value and the thread', async () => {
    const root = fake.say({ chat: 'oc_team', text: 'x', isLost: true })
    const buttons = [
      { label: 'Approve', value: 'approve:1', tone: 'good' },
      { label: 'Reject', value: 'reject:1', tone: 'bad' },
    ] as const
    const { id } = await send({ to: 'oc_team', thread: root, replyTo: root }, { buttons })
    const [message] = fake.sent()
    expect(message && buttonsOf(message)).toEqual([
      { value: 'approve:1', thread: root },
      { value: 'reject:1', thread: root },
    ])
    await bot.channel.update?.({ to: 'oc_team' }, { id }, { text: 'Approved.', clientId: 'c' }, signal)
    const [edited] = fake.sent()
    expect([edited && buttonsOf(edited), edited && textIn(edited), edited?.updated]).toEqual([[], 'Approved.', true])
  })
})

describe('a repeat', () => {
  test('that is answered 503 with a reason may have arrived, and one whose token is answered so has not', async () => {
    const body = { code: 1_061_045, msg: 'busy' }
    fake.fail({ fault: 'status', status: 503, body }, { matches: isPost })
    await expect(send({ to: 'oc_ada' })).rejects.toMatchObject({ mayHaveArrived: true })
    fake.revoke()
    fake.fail({ fault: 'status', status: 503 }, { matches: ({ path }) => path.includes('tenant_access_token') })
    await expect(send({ to: 'oc_ada' })).rejects.toMatchObject({ code: 'unavailable', mayHaveArrived: false })
  })

  test('follows soon on an unknown outcome, and the platform shows the message once', async () => {
    fake.fail({ fault: 'lost' }, { matches: isPost })
    const sent = send({ to: 'oc_ada' })
    await expect.poll(() => bot.host.clock.sleeping).toBeGreaterThan(0)
    await bot.host.advance(1000)
    expect(await sent).toEqual({ id: fake.sent()[0]?.message_id })
    expect(fake.sent()).toHaveLength(1)
    expect(fake.requests.filter(isPost)).toHaveLength(2)
  })

  test('is not made after the third unknown outcome, which the outbox then shows', async () => {
    fake.fail({ fault: 'reset' }, { times: 3, matches: isPost })
    const sent = send({ to: 'oc_ada' }).catch((error: unknown) => error)
    for (const ms of [1000, 4000]) {
      await expect.poll(() => bot.host.clock.sleeping).toBeGreaterThan(0)
      await bot.host.advance(ms)
    }
    expect(await sent).toMatchObject({ code: 'upstream' })
    expect(bot.channel.limits.dedupesClientIds).toBeUndefined()
  })

  test('that fails for certain does not show that the first attempt sent nothing', async () => {
    let posts = 0
    const isNth = (nth: number) => (request: ProviderRequest) => isPost(request) && ++posts === nth
    fake.fail({ fault: 'lost' }, { matches: isNth(1) })
    const sent = send({ to: 'oc_ada' }).catch((error: unknown) => error)
    await expect.poll(() => bot.host.clock.sleeping).toBeGreaterThan(0)
    fake.fail({ fault: 'status', status: 429, body: { code: 99991400, msg: 'limit' } }, { times: 2, matches: isPost })
    for (const ms of [1000, 4000]) {
      await expect.poll(() => bot.host.clock.sleeping).toBeGreaterThan(0)
      await bot.host.advance(ms)
    }
    expect(await sent).toMatchObject({ code: 'upstream' })
    expect(fake.sent()).toHaveLength(1)
  })

  test('is not made for a refusal, whose number decides what it means', async () => {
    await expect(send({ to: 'oc_nowhere' })).rejects.toMatchObject({ code: 'forbidden', message: expect.stringContaining('230002') })
    const limits = [
      [230020, 400, 'rate_limited'],
      [99991400, 429, 'rate_limited'],
      [99991672, 400, 'forbidden'],
      [230001, 400, 'invalid_request'],
    ] as const
    for (const [code, status, expected] of limits) {
      fake.fail({ fault: 'status', status, headers: { 'x-ogw-ratelimit-reset': '7' }, body: { code, msg: 'no' } }, { matches: isPost })
      const error = await send({ to: 'oc_ada' }).catch((thrown: unknown) => thrown)
      expect(error).toMatchObject({ code: expected, ...(expected === 'rate_limited' && { retryAfterSecs: 7 }) })
    }
    expect(fake.sent()).toEqual([])
  })

  test('ends with its signal', async () => {
    const aborted = abortedOnArrival(fake, isPost)
    await expect(bot.channel.send({ to: 'oc_ada' }, { text: 'x', clientId: 'c' }, aborted)).rejects.toMatchObject({ code: 'aborted' })
  })

  test('has the same short id, however long the client id is', () => {
    expect([uuidOf('client-1', 0), uuidOf('client-1', 2)]).toEqual(['client-1', 'client-1.2'])
    const long = 'x'.repeat(60)
    expect(uuidOf(long, 0)).toHaveLength(43)
    expect(new Set([uuidOf(long, 0), uuidOf(long, 1), uuidOf(`${long}y`, 0), uuidOf(long, 0)]).size).toBe(3)
  })
})

describe('the access token', () => {
  test('is requested once for all calls at the same time', async () => {
    await Promise.all(Array.from({ length: 20 }, (_, index) => send({ to: 'oc_ada' }, { clientId: `c-${index}` })))
    expect(fake.tokens).toBe(1)
  })

  test('is renewed once when the platform refuses it', async () => {
    await send({ to: 'oc_ada' })
    fake.revoke()
    await Promise.all(Array.from({ length: 20 }, (_, index) => send({ to: 'oc_ada' }, { clientId: `d-${index}` })))
    expect(fake.tokens).toBe(2)
    expect(fake.sent()).toHaveLength(21)
  })

  test('is renewed before it ends', async () => {
    await send({ to: 'oc_ada' })
    await bot.host.advance(7_139_000)
    await send({ to: 'oc_ada' }, { clientId: 'c-2' })
    expect(fake.tokens).toBe(1)
    await bot.host.advance(2000)
    await send({ to: 'oc_ada' }, { clientId: 'c-3' })
    expect(fake.tokens).toBe(2)
  })

  test('that is refused permanently leaves the message to be sent later, and no error contains the secret', async () => {
    fake.revoke(true)
    const error = await send({ to: 'oc_ada' }).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringContaining('10014') })
    expect(JSON.stringify([error, bot.host.logs])).not.toContain('workchat-app-secret-01')
  })

  test('that cannot be requested leaves the message to be sent later', async () => {
    fake.fail({ fault: 'lost' })
    await expect(send({ to: 'oc_ada' })).rejects.toMatchObject({ code: 'unavailable' })
  })
})

describe('files', () => {
  const attachment = (kind: 'image' | 'audio' | 'video' | 'file', name: string, bytes: Uint8Array = Buffer.from(name)) => ({
    kind,
    name,
    source: { bytes },
  })

  test('follow the text, each as a message of its type', async () => {
    const files = [
      attachment('image', 'a.png'),
      attachment('image', 'a.svg'),
      attachment('audio', 'a.opus'),
      attachment('audio', 'a.mp3'),
      attachment('video', 'a.mp4'),
      attachment('file', 'ä b.pdf'),
    ]
    const { id } = await send({ to: 'oc_ada' }, { attachments: files })
    expect(fake.sent().map(({ msg_type }) => msg_type)).toEqual(['interactive', 'image', 'file', 'audio', 'file', 'media', 'file'])
    expect(id).toBe(fake.sent()[0]?.message_id)
    expect([...fake.files.values()].map(({ name }) => name)).toEqual(files.map(({ name }) => name))
  })

  test('may come without a text', async () => {
    const { id } = await send({ to: 'oc_ada' }, { text: '', attachments: [attachment('file', 'a.txt')] })
    expect(fake.sent()).toMatchObject([{ message_id: id, msg_type: 'file' }])
  })

  test('have their bytes unchanged, and a picture above 10 MB is a file', async () => {
    const bytes = readFileSync(import.meta.filename)
    await send(
      { to: 'oc_ada' },
      { text: '', attachments: [attachment('file', 'a.ts', bytes), attachment('image', 'b.jpg', Buffer.alloc(10_000_001))] },
    )
    expect([...fake.files.values()].map(({ bytes: kept }) => Buffer.from(kept).equals(bytes))).toEqual([true, false])
    expect(fake.sent().map(({ msg_type }) => msg_type)).toEqual(['file', 'file'])
  })

  test('that cannot be uploaded leave the whole message to be sent later', async () => {
    const isUpload = ({ path }: ProviderRequest): boolean => path.endsWith('/im/v1/files')
    fake.fail({ fault: 'lost' }, { matches: isUpload })
    await expect(send({ to: 'oc_ada' }, { attachments: [attachment('file', 'a.txt')] })).rejects.toMatchObject({ code: 'unavailable' })
    await expect(send({ to: 'oc_ada' }, { attachments: [attachment('file', 'a.txt', Buffer.alloc(0))] })).rejects.toMatchObject({
      code: 'invalid_request',
    })
    expect(fake.sent()).toEqual([])
  })

  test('of which one is refused after the text leave the outcome open', async () => {
    let posts = 0
    const isSecond = (request: ProviderRequest): boolean => isPost(request) && ++posts === 2
    fake.fail({ fault: 'status', status: 400, body: { code: 230001, msg: 'invalid file_key' } }, { matches: isSecond })
    await expect(send({ to: 'oc_ada' }, { attachments: [attachment('file', 'a.txt')] })).rejects.toMatchObject({ code: 'upstream' })
    expect(fake.sent()).toHaveLength(1)
  })

  test('of messages are downloaded with the token, which is renewed if it is refused', async () => {
    await send({ to: 'oc_ada' }, { text: '', attachments: [attachment('file', 'a.txt')] })
    const [[key = ''] = []] = [...fake.files]
    const message = fake.say({ type: 'file', content: { file_key: key, file_name: 'a.txt' }, isLost: true })
    const fetchMedia = (id: string, bytesMax = 100) =>
      bot.channel.fetchMedia?.({ kind: 'file', name: 'a.txt', source: { id } }, { bytesMax, signal })
    fake.revoke()
    expect(String((await fetchMedia(`${message}/file/${key}`))?.bytes)).toBe('a.txt')
    expect(fake.tokens).toBe(2)
    await expect(fetchMedia(`${message}/file/${key}`, 3)).rejects.toMatchObject({ code: 'too_large' })
    await expect(fetchMedia(`${message}/file/other`)).rejects.toMatchObject({ code: 'invalid_request' })
    for (const id of ['', 'a/b', `${message}/../${key}`, `../file/${key}`, `${message}/file/${key}/x`]) {
      expect(() => fetchMedia(id), id).toThrow(expect.objectContaining({ code: 'invalid_request' }))
    }
  })
})

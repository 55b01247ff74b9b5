/** Runs the channel against a fake of the platform over real sockets, with faults on the wire. */
import { type Address, AppError, type Channel, type Outbound } from '@sluice/sdk'
import { startFakeProvider } from '@sluice/testkit/fake-provider'
import { type TestHost, testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { afterEach, describe, expect, test } from 'vitest'
import { textrelaySection } from './config.ts'
import feature from './index.ts'
import {
  startTextrelayFake,
  TEXTRELAY_PHONE,
  TEXTRELAY_TOKEN,
  type TextrelayFake,
  type TextrelayFakeOptions,
  textrelaySignatures,
} from './testing/fake.ts'

const SECRET = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8='
const CHAT: Address = { to: 'chat-1', more: { handle: '+15550003333' } }
const never = new AbortController().signal

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const channelAt = (apiUrl: string, given: Partial<TestHost> = {}): { channel: Channel; logs: readonly unknown[] } => {
  const host = testHost({
    fetch,
    publicFetch: async (url, { signal, responseBytesMax = 0 }) => {
      const response = await fetch(url, { signal })
      if (Number(response.headers.get('content-length')) > responseBytesMax) throw new AppError('too_large', 'the response is too large')
      return response
    },
    ...given,
  })
  const config = v.parse(textrelaySection.schema, {
    api_token: TEXTRELAY_TOKEN,
    from_phone: TEXTRELAY_PHONE,
    signing_secret: SECRET,
    api_url: apiUrl,
  })
  const [channel] = feature.build(host, config).channels ?? []
  if (!channel) throw new Error('the feature built no channel')
  return { channel, logs: host.logs }
}

describe('typing', () => {
  const show = async (address: Address) => {
    const { channel, fake } = await arrange({ chats: { 'chat-1': '+15550003333', group: '+15550003333,+15550004444' } })
    await channel.typing?.(address, never)
    return fake
  }

  test('is shown in a chat of two', async () => {
    expect((await show(CHAT)).typing).toEqual(['chat-1'])
  })

  test.each([
    ['a group', { to: 'group' }],
    ['a person without a chat', { to: '+15550003333', more: { handle: '+15550003333' } }],
  ])('makes no request for %s', async (_, address) => {
    expect((await show(address)).requests).toEqual([])
  })
})

const arrange = async (options: TextrelayFakeOptions = {}) => {
  const fake = await startTextrelayFake(options)
  closing.push(fake.close)
  const { channel, logs } = channelAt(fake.apiUrl)
  const send = (
    to: Address = CHAT,
    { text = 'hello', clientId = 'client-1', attachments, signal = never }: Partial<Outbound> & { signal?: AbortSignal } = {},
  ) => channel.send(to, { text, clientId, ...(attachments && { attachments }) }, signal)
  const codeOf = (to?: Address, message?: Parameters<typeof send>[1]): Promise<string> =>
    send(to, message).then(
      () => 'sent',
      (error: unknown) => (error instanceof AppError ? error.code : String(error)),
    )
  return { fake, channel, send, codeOf, logs }
}
const texts = (fake: TextrelayFake) => fake.sent.map(({ to, text }) => [to, text])

describe('send', () => {
  test('sends into the chat of the message', async () => {
    const { fake, send } = await arrange()
    const { id } = await send()
    expect(fake.sent).toEqual([{ id, chat: 'chat-1', to: '+15550003333', text: 'hello', files: [], idempotencyKey: 'client-1' }])
  })

  test('uploads the files of a reply and refuses types that the platform does not take', async () => {
    const { fake, send } = await arrange()
    const bytes = Uint8Array.of(1, 2, 3)
    await send(CHAT, { attachments: [{ kind: 'file', name: 'a.pdf', source: { bytes } }] })
    expect(fake.sent).toMatchObject([{ text: 'hello', files: [{ name: 'a.pdf', bytes }] }])
    const refused = send(CHAT, { attachments: [{ kind: 'image', name: 'a.webp', source: { bytes } }] })
    await expect(refused).rejects.toMatchObject({ code: 'invalid_request' })
    expect(fake.sent).toHaveLength(1)
  })

  test('uploads to storage of another host by publicFetch, without the token', async () => {
    const fake = await startTextrelayFake()
    closing.push(fake.close)
    const url = 'https://storage.example/file?signature=x'
    const puts: unknown[] = []
    const { channel } = channelAt(fake.apiUrl, {
      fetch: async (input, init) => {
        if (!String(input).endsWith('/attachments')) return fetch(input, init)
        return Response.json({ attachment_id: 'a', upload_url: url, required_headers: { 'content-type': 'application/pdf' } })
      },
      publicFetch: async (to, { method, headers, body, admit }) => {
        admit?.(new URL(to))
        expect(() => admit?.(new URL('https://10.0.0.1/'))).toThrow('redirects')
        puts.push([to, method, headers, body])
        return new Response()
      },
    })
    const attachments = [{ kind: 'file' as const, name: 'a.pdf', source: { bytes: Uint8Array.of(1, 2) } }]
    await channel.send(CHAT, { text: '', clientId: 'c', attachments }, never).catch(() => undefined)
    expect(puts).toEqual([[url, 'PUT', { accept: 'application/json', 'content-type': 'application/pdf' }, Uint8Array.of(1, 2)]])
  })

  test('tries again when storage refuses a file, because nothing was sent', async () => {
    const { fake, send } = await arrange()
    fake.fail({ fault: 'lost' }, { matches: ({ method }) => method === 'PUT' })
    const sending = send(CHAT, { attachments: [{ kind: 'file', name: 'a.pdf', source: { bytes: Uint8Array.of(1) } }] })
    await expect(sending).rejects.toMatchObject({ code: 'unavailable' })
    expect(fake.sent).toEqual([])
  })

  test('sends the longest text in any script unchanged', async () => {
    const { fake, send, channel } = await arrange()
    const text = '😀é\n"\\'.repeat(channel.limits.text / 6)
    await send(CHAT, { text })
    expect(texts(fake)).toEqual([['+15550003333', text]])
  })

  test('starts a new chat when the old one is gone or there was none', async () => {
    const { fake, send } = await arrange()
    fake.dropChat('chat-1')
    const { id } = await send()
    expect(fake.sent[0]?.id).toBe(id)
    await send({ to: 'ada@example.com' }, { clientId: 'client-2' })
    expect(texts(fake)).toEqual([
      ['+15550003333', 'hello'],
      ['ada@example.com', 'hello'],
    ])
    expect(fake.requests.at(-1)?.json).toMatchObject({ from: TEXTRELAY_PHONE, to: ['ada@example.com'] })
  })

  test('does not start a new chat for a group that is gone', async () => {
    const { fake, codeOf } = await arrange()
    expect(await codeOf({ to: 'chat-of-a-group' })).toBe('invalid_request')
    expect(fake.requests).toHaveLength(1)
  })

  test('does not start a new chat for a 404 about another object', async () => {
    const { fake, codeOf } = await arrange()
    fake.fail({ fault: 'status', status: 404, body: { success: false, error: { status: 404, code: 2002, message: 'Message not found' } } })
    expect(await codeOf()).toBe('invalid_request')
    expect(fake.sent).toEqual([])
  })

  test('escapes the id of a chat in the path', async () => {
    const { fake, codeOf } = await arrange()
    for (const to of ['..', '.', '../messages', 'a/b?c#d', '%2e%2e', '\ud800']) expect(await codeOf({ to })).toBe('invalid_request')
    expect(fake.requests.every(({ path }) => /^\/api\/partner\/v3\/chats\/[^/]+\/messages$/.test(path))).toBe(true)
    expect(fake.requests).toHaveLength(4)
  })

  test("reports a refusal in the platform's own words", async () => {
    const { send } = await arrange({ phones: [] })
    await expect(send({ to: '+15550003333' })).rejects.toMatchObject({
      code: 'forbidden',
      message: expect.stringContaining('permission to send from this phone number (code 2006)'),
    })
  })

  test('rejects a first message with a link', async () => {
    const { send } = await arrange()
    await expect(send({ to: '+15550003333' }, { text: 'see https://example.com' })).rejects.toMatchObject({ code: 'invalid_request' })
  })
})

describe('faults on the wire', () => {
  test('reports 429 as rate_limited, with Retry-After if present', async () => {
    const { fake, send } = await arrange()
    fake.fail({ fault: 'status', status: 429, headers: { 'retry-after': '12' } })
    fake.fail({ fault: 'status', status: 429 })
    await expect(send()).rejects.toMatchObject({ code: 'rate_limited', retryAfterSecs: 12 })
    await expect(send()).rejects.toMatchObject({ code: 'rate_limited', retryAfterSecs: undefined })
    await send()
    expect(fake.sent).toHaveLength(1)
  })

  test('reports 5xx as upstream, because the message may have been sent, and 503 as unavailable', async () => {
    const { fake, codeOf } = await arrange()
    for (const status of [500, 502, 504, 503]) fake.fail({ fault: 'status', status, body: '<html>' })
    expect([await codeOf(), await codeOf(), await codeOf(), await codeOf()]).toEqual([...Array(3).fill('upstream'), 'unavailable'])
    expect(await codeOf()).toBe('sent')
  })

  test.each(['lost', 'garbage', 'cut'] as const)('reports a %s answer as upstream, and the platform drops the repeat', async (fault) => {
    const { fake, send, codeOf } = await arrange()
    fake.fail({ fault })
    expect(await codeOf()).toBe('upstream')
    const { id } = await send()
    expect(fake.sent.map((sent) => sent.id)).toEqual([id])
  })

  test('the platform drops a repeat in a new chat as well', async () => {
    const { fake, send, codeOf } = await arrange()
    fake.dropChat('chat-1')
    fake.fail({ fault: 'lost' }, { matches: ({ path }) => path.endsWith('/chats') })
    expect(await codeOf()).toBe('upstream')
    await send()
    expect(fake.sent).toHaveLength(1)
  })

  test('reports a reset connection as upstream', async () => {
    const { fake, codeOf } = await arrange()
    fake.fail({ fault: 'reset' })
    expect(await codeOf()).toBe('upstream')
    expect(fake.sent).toEqual([])
  })

  test('waits for a slow answer', async () => {
    const { fake, send } = await arrange()
    fake.fail({ fault: 'slow', ms: 1 })
    expect(await send()).toEqual({ id: fake.sent[0]?.id })
  })

  test('stops waiting for an answer when aborted', async () => {
    const { fake, send } = await arrange()
    const abort = new AbortController()
    fake.fail({ fault: 'hang' })
    const sending = send(CHAT, { signal: abort.signal })
    await expect.poll(() => fake.requests.length).toBe(1)
    abort.abort()
    await expect(sending).rejects.toMatchObject({ code: 'aborted' })
  })

  test('does not read an answer beyond its limit', async () => {
    const { fake, codeOf } = await arrange()
    fake.fail({ fault: 'status', status: 200, body: `"${'x'.repeat(2_000_000)}"` })
    expect(await codeOf()).toBe('upstream')
  })

  test('does not follow a redirect, so the token reaches no other server', async () => {
    const { fake, codeOf, logs } = await arrange()
    const stranger = await startFakeProvider(() => ({ status: 200, body: { message: { id: 'stolen' } } }))
    closing.push(stranger.close)
    for (const status of [302, 307]) {
      fake.fail({ fault: 'status', status, headers: { location: `${stranger.url}/` } })
      expect(await codeOf()).toBe('invalid_request')
    }
    expect(stranger.requests).toEqual([])
    expect(JSON.stringify(logs)).not.toContain(TEXTRELAY_TOKEN)
  })

  test('sends after an expired token was replaced', async () => {
    const { fake, codeOf } = await arrange()
    fake.changeToken('another')
    expect(await codeOf()).toBe('unavailable')
    fake.changeToken(TEXTRELAY_TOKEN)
    expect(await codeOf()).toBe('sent')
  })

  test('reports a refused connection as unavailable', async () => {
    const { fake, codeOf } = await arrange()
    await fake.close()
    expect(await codeOf()).toBe('unavailable')
  })

  test('reports a URL that is not the API', async () => {
    const fake = await startTextrelayFake()
    closing.push(fake.close)
    const { channel } = channelAt(`${fake.url}/api/partner/v2`)
    await expect(channel.send({ to: '+15550003333' }, { text: 'x', clientId: 'c' }, never)).rejects.toBeInstanceOf(AppError)
  })
})

describe('webhooks and media', () => {
  test('accepts a webhook that the platform signed and replies in its chat', async () => {
    const { channel, fake } = await arrange()
    const body = JSON.stringify({
      event_type: 'message.received',
      event_id: 'event-1',
      data: {
        id: 'message-1',
        direction: 'inbound',
        chat: { id: 'chat-1', is_group: false, owner_handle: { handle: TEXTRELAY_PHONE, is_me: true } },
        sender_handle: { handle: '+15550003333', is_me: false },
        parts: [{ type: 'text', value: 'hi' }],
      },
    })
    const receivedAtMs = Date.UTC(2026, 0, 1)
    const headers = Object.entries(textrelaySignatures(body, { secret: SECRET, id: 'event-1', atMs: receivedAtMs }))
    const raw = {
      headers: Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value])),
      url: new URL('http://localhost/textrelay'),
      body: new TextEncoder().encode(body),
      receivedAtMs,
    }
    expect(await channel.webhook?.verify(raw)).toEqual({ by: 'webhook-signature' })
    const [message] = (await channel.webhook?.parse(raw)) ?? []
    await channel.send(message?.to ?? { to: '' }, { text: 'hello', clientId: 'client-1' }, never)
    expect(texts(fake)).toEqual([['+15550003333', 'hello']])
  })

  const photo = { bytes: Buffer.of(0xff, 0xd8, 0), mime: 'image/jpeg; q=1' }
  const fetchMedia = async (channel: Channel, url: string, { bytesMax = 1000, signal = never } = {}) =>
    channel.fetchMedia?.({ kind: 'image', name: 'x', source: { url } }, { bytesMax, signal })

  test('fetches media from the URL in the message, without the token', async () => {
    const { channel, fake } = await arrange({ media: { photo } })
    expect(await fetchMedia(channel, fake.mediaUrl('photo'))).toEqual({ bytes: photo.bytes, mime: 'image/jpeg' })
    expect(fake.requests.at(-1)?.headers.get('authorization')).toBeNull()
  })

  test('rejects media that are too large, gone or without a URL', async () => {
    const { channel, fake } = await arrange({ media: { photo } })
    await expect(fetchMedia(channel, fake.mediaUrl('photo'), { bytesMax: 2 })).rejects.toMatchObject({ code: 'too_large' })
    await expect(fetchMedia(channel, fake.mediaUrl('expired'))).rejects.toMatchObject({ code: 'invalid_request' })
    const noUrl = channel.fetchMedia?.({ kind: 'image', name: 'x', source: { id: 'a-1' } }, { bytesMax: 1000, signal: never })
    await expect(noUrl).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('reports temporary failures of media as unavailable', async () => {
    const { channel, fake } = await arrange({ media: { photo } })
    for (const status of [408, 429, 500, 503]) {
      fake.fail({ fault: 'status', status })
      await expect(fetchMedia(channel, fake.mediaUrl('photo'))).rejects.toMatchObject({ code: 'unavailable' })
    }
    fake.fail({ fault: 'cut' })
    await expect(fetchMedia(channel, fake.mediaUrl('photo'))).rejects.toMatchObject({ code: 'unavailable' })
    expect((await fetchMedia(channel, fake.mediaUrl('photo')))?.bytes).toEqual(photo.bytes)
  })

  test('passes on a refusal of publicFetch', async () => {
    const host = testHost({
      publicFetch: async () => {
        throw new AppError('forbidden', 'not a public address')
      },
    })
    const config = v.parse(textrelaySection.schema, { api_token: 'x', from_phone: TEXTRELAY_PHONE })
    const [channel] = feature.build(host, config).channels ?? []
    const fetching = channel?.fetchMedia?.({ kind: 'file', name: 'x', source: { url: 'http://10.0.0.1/' } }, { bytesMax: 1, signal: never })
    await expect(fetching).rejects.toMatchObject({ code: 'forbidden' })
  })
})

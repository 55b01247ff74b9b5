import { AppError, type Outbound } from '@sluice/sdk'
import { abortedOnArrival, type ProviderFault, startFakeProvider } from '@sluice/testkit/fake-provider'
import { testHost } from '@sluice/testkit/host'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { build } from './testing/build-channel.ts'
import { type ChatappFake, startChatappFake } from './testing/fake.ts'

const TOKEN = 'sample-access-token'
const message: Outbound = { text: 'hello', clientId: 'client-1' }
const to = { to: '+15550002222', replyTo: 'wamid.HBgL0001' }

let fake: ChatappFake
beforeEach(async () => {
  fake = await startChatappFake({ accessToken: TOKEN })
})
afterEach(() => fake.close())

const channel = (section: object = {}, host = testHost({ fetch })) => build({ api_url: fake.url, ...section }, host).channel
const send = (changes: { to?: string; replyTo?: string; text?: string; signal?: AbortSignal } = {}) => {
  const { text = message.text, signal = new AbortController().signal, ...address } = changes
  return channel().send({ to: to.to, ...address }, { ...message, text }, signal)
}
const failure = (sending: Promise<unknown>): Promise<unknown> => sending.catch((error: unknown) => error)

describe('send', () => {
  test('sends to a number and quotes the message it answers', async () => {
    expect(await channel().send(to, message, new AbortController().signal)).toEqual({ id: 'wamid.FAKE00000001' })
    expect(fake.sent).toEqual([
      { id: 'wamid.FAKE00000001', to: '15550002222', recipientType: 'individual', text: 'hello', replyTo: 'wamid.HBgL0001' },
    ])
    const [request] = fake.requests
    expect(request).toMatchObject({ method: 'POST', path: '/v23.0/200000000000002/messages' })
    expect(request?.headers.get('authorization')).toBe(`Bearer ${TOKEN}`)
    expect(request?.body.toString()).toBe(
      '{"messaging_product":"whatsapp","recipient_type":"individual","to":"15550002222","type":"text",' +
        '"text":{"preview_url":false,"body":"hello"},"context":{"message_id":"wamid.HBgL0001"}}',
    )
  })

  test('sends without the quote when the platform refuses the quoted message', async () => {
    // "Parameter value is not valid": https://developers.facebook.com/documentation/business-messaging/whatsapp/support/error-codes
    const details = 'The message_id of the context is not valid'
    const error = {
      message: '(#131009) Parameter value is not valid',
      code: 131009,
      error_data: { messaging_product: 'whatsapp', details },
    }
    fake.fail({ fault: 'status', status: 400, body: { error } })
    await send({ replyTo: 'wamid.gone' })
    expect(fake.sent).toMatchObject([{ text: 'hello' }])
    expect(fake.sent[0]).not.toHaveProperty('replyTo')
  })

  test('sends to a user without a number and to a group', async () => {
    await send({ to: 'US.90000000000001' })
    await send({ to: 'group:Y2FwaV9ncm91cDoxNTU1MDAwMTExMTow' })
    expect(fake.sent).toMatchObject([
      { to: 'US.90000000000001', recipientType: 'individual' },
      { to: 'Y2FwaV9ncm91cDoxNTU1MDAwMTExMTow', recipientType: 'group' },
    ])
    expect(fake.requests[0]?.json).toMatchObject({ recipient: 'US.90000000000001' })
  })

  test('replies to the sender of a message', async () => {
    const { webhook } = build({})
    for (const sender of ['+15550002222', 'US.90000000000001']) {
      const { body, headers } = webhook.sample({ sender, text: 'hi', id: 'wamid.S1', atMs: 0 })
      const raw = { headers, url: new URL('http://localhost/chatapp'), body: new TextEncoder().encode(body), receivedAtMs: 0 }
      const [inbound] = await webhook.parse(raw)
      if (inbound) await channel().send(inbound.to, message, new AbortController().signal)
    }
    expect(fake.sent.map(({ to, replyTo }) => [to, replyTo])).toEqual([
      ['15550002222', 'wamid.S1'],
      ['US.90000000000001', 'wamid.S1'],
    ])
  })

  test('sends 4096 UTF-16 units and rejects one more with the reason', async () => {
    await send({ text: '😀'.repeat(2048) })
    expect(fake.sent).toHaveLength(1)
    const error = await failure(send({ text: 'a'.repeat(4097) }))
    expect(error).toMatchObject({ code: 'invalid_request', message: expect.stringContaining('at most 4096 characters') })
  })

  test('accepts a slash after api_url, another version and blanks around the token', async () => {
    const other = await startChatappFake({ accessToken: TOKEN, apiVersion: 'v24.0' })
    const section = { api_url: `${other.url}/`, api_version: 'v24.0', access_token: ` ${TOKEN}\n` }
    await channel(section).send(to, message, new AbortController().signal)
    expect(other.sent).toHaveLength(1)
    await other.close()
  })
})

describe('buttons', () => {
  const buttons = [
    { label: 'Approve', value: 'a.1', tone: 'good' as const },
    { label: 'Reject this very dangerous thing', value: 'r.1', tone: 'bad' as const },
  ]
  const ask = (address: { to: string; replyTo?: string }, text: string) =>
    channel().send(address, { text, buttons, clientId: 'client-1' }, new AbortController().signal)

  test('are sent under a question, with labels that the platform accepts', async () => {
    await ask(to, 'Delete it?')
    expect(fake.sent).toMatchObject([
      {
        text: 'Delete it?',
        replyTo: 'wamid.HBgL0001',
        buttons: [
          { id: 'sluice:a.1', title: 'Approve' },
          { id: 'sluice:r.1', title: 'Reject this very dan' },
        ],
      },
    ])
  })

  test.each([
    ['a text of more than 1024 UTF-16 units', to, 'a'.repeat(1025)],
    ['a message to a group', { to: 'group:Y2FwaV9ncm91cDoxNTU1MDAwMTExMTow' }, 'Delete it?'],
  ])('%s is sent without them', async (_, address, text) => {
    await ask(address, text)
    expect(fake.sent).toEqual([expect.not.objectContaining({ buttons: expect.anything() })])
    expect(fake.sent[0]?.text).toBe(text)
  })
})

describe('typing', () => {
  const show = (address: { to: string; replyTo?: string }) => channel().typing?.(address, new AbortController().signal)

  test('shows the indicator under the message that is answered', async () => {
    await show(to)
    expect(fake.typing).toEqual(['wamid.HBgL0001'])
  })

  test.each([
    ['a group', { to: 'group:Y2Fw', replyTo: 'wamid.1' }],
    ['a conversation without a message', { to: '+15550002222' }],
  ])('makes no request for %s', async (_, address) => {
    await show(address)
    expect(fake.requests).toEqual([])
  })
})

describe('faults on the wire', () => {
  const graphError = (code: number) => ({ error: { message: `(#${code}) It did not work`, type: 'OAuthException', code } })
  test.each<[string, ProviderFault, object]>([
    [
      '429 with Retry-After',
      { fault: 'status', status: 429, headers: { 'retry-after': '7' } },
      { code: 'rate_limited', retryAfterSecs: 7 },
    ],
    ['429 without Retry-After', { fault: 'status', status: 429 }, { code: 'rate_limited', retryAfterSecs: undefined }],
    ['a pair limit as 400', { fault: 'status', status: 400, body: graphError(131056) }, { code: 'rate_limited' }],
    ['a throughput limit as 400', { fault: 'status', status: 400, body: graphError(130429) }, { code: 'rate_limited' }],
    ['an expired token as 400', { fault: 'status', status: 400, body: graphError(190) }, { code: 'unavailable' }],
    [
      'a closed window',
      { fault: 'status', status: 400, body: graphError(131047) },
      { code: 'invalid_request', message: 'chatapp answered 400: (#131047) It did not work' },
    ],
    ['a missing permission', { fault: 'status', status: 403, body: graphError(10) }, { code: 'forbidden' }],
    ['500', { fault: 'status', status: 500 }, { code: 'upstream' }],
    ['502 with an HTML page', { fault: 'status', status: 502, body: '<html></html>' }, { code: 'upstream' }],
    ['503', { fault: 'status', status: 503 }, { code: 'unavailable' }],
    ['503 with Retry-After', { fault: 'status', status: 503, headers: { 'retry-after': '3' } }, { code: 'unavailable', retryAfterSecs: 3 }],
    ['a reset before the request', { fault: 'reset' }, { code: 'upstream' }],
    ['a reset after the request', { fault: 'lost' }, { code: 'upstream' }],
    ['an answer cut short', { fault: 'cut' }, { code: 'upstream' }],
    ['a garbled answer', { fault: 'garbage' }, { code: 'upstream' }],
    ['truncated JSON', { fault: 'status', status: 200, body: '{"messages":[{"id":"wa' }, { code: 'upstream' }],
    ['an answer without an id', { fault: 'status', status: 200, body: { messages: [] } }, { code: 'upstream' }],
    ['an oversize answer', { fault: 'status', status: 200, body: 'x'.repeat(1_100_000) }, { code: 'upstream' }],
  ])('reports %s', async (_what, fault, expected) => {
    fake.fail(fault)
    const error = await failure(send())
    expect(error).toBeInstanceOf(AppError)
    expect(error).toMatchObject(expected)
  })

  test('waits for a slow answer', async () => {
    fake.fail({ fault: 'slow', ms: 1 })
    expect(await send()).toEqual({ id: 'wamid.FAKE00000001' })
  })

  test('sends after a burst of 503 has ended', async () => {
    fake.fail({ fault: 'status', status: 503, headers: { 'retry-after': '0' } }, { times: 3 })
    for (let attempt = 0; attempt < 3; attempt++) expect(await failure(send())).toMatchObject({ code: 'unavailable' })
    await send()
    expect(fake.sent).toHaveLength(1)
  })

  test('stops waiting for an answer when aborted', async () => {
    expect(await failure(send({ signal: abortedOnArrival(fake) }))).toMatchObject({ code: 'aborted' })
  })

  test('reports a refused connection as unavailable', async () => {
    const gone = await startFakeProvider(() => ({ status: 200 }))
    await gone.close()
    const sending = channel({ api_url: gone.url }).send(to, message, new AbortController().signal)
    expect(await failure(sending)).toMatchObject({ code: 'unavailable' })
  })

  test('does not follow a redirect', async () => {
    const thief = await startFakeProvider(() => ({ status: 200, body: { messages: [{ id: 'wamid.THIEF' }] } }))
    for (const status of [302, 307, 308]) {
      fake.fail({ fault: 'status', status, headers: { location: `${thief.url}/` } })
      expect(await failure(send())).toMatchObject({ code: 'invalid_request' })
    }
    expect(thief.requests).toEqual([])
    await thief.close()
  })
})

describe('the access token', () => {
  test('reports an expired token as unavailable and in the health', async () => {
    const host = testHost({ fetch })
    const sender = channel({}, host)
    expect(sender.health?.()).toEqual({ state: 'ok' })
    await sender.send(to, message, new AbortController().signal)
    expect(sender.health?.()).toEqual({ state: 'ok', lastSentAtMs: host.clock.nowMs() })
    fake.expireToken()
    const error = await failure(sender.send(to, message, new AbortController().signal))
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringContaining('Session has expired') })
    expect(sender.health?.()).toMatchObject({ state: 'down', detail: expect.stringContaining('Session has expired') })
  })

  test('removes a token that the platform quotes from the error', async () => {
    const error = await failure(channel({ access_token: 'wrong-token-1' }).send(to, message, new AbortController().signal))
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringContaining('Malformed access token [secret] (code 190)') })
    expect(String(error)).not.toContain('wrong-token-1')
  })
})

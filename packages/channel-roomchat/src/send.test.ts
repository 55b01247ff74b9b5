import { AppError, Secret, sha256Hex } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { sendMessage } from './send.ts'
import { serverOf, sign } from './server.ts'

const SECRET = 'roomchat-webhook-secret-01'
const RANDOM = '00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff'
const CREATED = () => Response.json({ ocs: { meta: { status: 'ok' }, data: null } }, { status: 201 })

test.each([
  ['hello room', 'd76291580b2da04c81d8e351724705c0f4862eecc807109d6a624ca6389e36e7'],
  ['héllo ✓', '01a2c84804693e61bd6101410b9d50dfa4033bd055cb7efd1115167f0a6e5dbe'],
  ['👀', '47b75a2055ec612a93c593ac412049ca8cc7357476ffb1e209a1a210e858cf26'],
])('signs the random value and the text %s', (text, signature) => {
  expect(sign(SECRET, RANDOM, text)).toBe(signature)
})

interface Changes {
  readonly secret?: string | undefined
  readonly baseUrl?: string
  readonly to?: { readonly to: string; readonly replyTo?: string }
  readonly text?: string
}

/** Sends to a server that gives these answers in turn. Returns the outcome and the requests. */
async function send(changes: Changes = {}, ...answers: (() => Response)[]) {
  const { secret, baseUrl = 'https://cloud.example/talk/', to = { to: 'ops4room' }, text = 'hello' } = { secret: SECRET, ...changes }
  const requests: { url: string; headers: Headers; body: Record<string, unknown> }[] = []
  const config = {
    enabled: true,
    base_url: baseUrl,
    app_token: new Secret(' app-token '),
    bot_name: '',
    ack_reactions: true,
    webhook_secret: secret === undefined ? undefined : new Secret(secret),
    allowed_users: [],
  }
  const server = serverOf(config, async (input, init) => {
    const request = new Request(input, init)
    requests.push({ url: request.url, headers: request.headers, body: (await request.json()) as Record<string, unknown> })
    return (answers.shift() ?? CREATED)()
  })
  const sending = sendMessage(server, to, { text, clientId: 'client-1' }, new AbortController().signal)
  const outcome: unknown = await sending.catch((error: unknown) => error)
  return { outcome, requests, request: requests[0] }
}
const refusal = (status: number, body: unknown) => () => Response.json(body, { status })

describe('with a secret', () => {
  test('signs the text and sends the headers of the bot API', async () => {
    const { request, outcome } = await send({ text: 'héllo ✓' })
    expect(request?.url).toBe('https://cloud.example/talk/ocs/v2.php/apps/spreed/api/v1/bot/ops4room/message')
    const random = request?.headers.get('x-nextcloud-talk-bot-random') ?? ''
    expect(random).toMatch(/^[0-9a-f]{64}$/)
    expect(request?.headers.get('x-nextcloud-talk-bot-signature')).toBe(sign(SECRET, random, 'héllo ✓'))
    expect(Object.fromEntries(request?.headers ?? [])).toMatchObject({
      'ocs-apirequest': 'true',
      accept: 'application/json',
      'content-type': 'application/json',
    })
    expect(request?.headers.has('authorization')).toBe(false)
    expect(request?.body).toEqual({ message: 'héllo ✓', referenceId: sha256Hex('client-1'), silent: false })
    expect(outcome).toEqual({ id: sha256Hex('client-1') })
  })

  test('uses a new random value for each call', async () => {
    const randoms = await Promise.all([send(), send()])
    expect(new Set(randoms.map(({ request }) => request?.headers.get('x-nextcloud-talk-bot-random'))).size).toBe(2)
  })

  test('signs half of a surrogate pair as it is sent', async () => {
    const { request } = await send({ text: 'a\ud83d' })
    const random = request?.headers.get('x-nextcloud-talk-bot-random') ?? ''
    expect(request?.body.message).toBe('a\ufffd')
    expect(request?.headers.get('x-nextcloud-talk-bot-signature')).toBe(sign(SECRET, random, 'a\ufffd'))
  })
})

describe('without a secret', () => {
  test('calls the chat API with the app token and returns its id', async () => {
    for (const secret of [undefined, ' ']) {
      const { request, outcome } = await send({ secret }, () => Response.json({ ocs: { data: { id: 4727 } } }, { status: 201 }))
      expect(request?.url).toBe('https://cloud.example/talk/ocs/v2.php/apps/spreed/api/v1/chat/ops4room?format=json')
      expect(request?.headers.get('authorization')).toBe('Bearer app-token')
      expect([...(request?.headers.keys() ?? [])].filter((name) => name.includes('signature'))).toEqual([])
      expect(request?.body.message).toBe('hello')
      expect(outcome).toEqual({ id: '4727' })
    }
  })
})

describe('quoting', () => {
  const to = { to: 'ops4room', replyTo: '4711' }

  test('quotes the message by its number and ignores other values', async () => {
    expect((await send({ to })).request?.body.replyTo).toBe(4711)
    for (const replyTo of ['', 'x', '0', '-1', '4711.5', '0x10', '9'.repeat(20)]) {
      expect((await send({ to: { ...to, replyTo } })).request?.body).not.toHaveProperty('replyTo')
    }
  })

  test('sends without a quote when the quoted message is gone', async () => {
    const gone = refusal(400, { ocs: { data: { error: 'reply-to' } } })
    const { requests, outcome } = await send({ to }, gone)
    expect(requests.map(({ body }) => body.replyTo)).toEqual([4711, undefined])
    expect(outcome).toEqual({ id: sha256Hex('client-1') })
    const twice = await send({ to }, gone, gone)
    expect([twice.requests.length, twice.outcome]).toEqual([2, expect.objectContaining({ code: 'invalid_request' })])
  })

  test('does not repeat the request after any other failure', async () => {
    for (const status of [401, 403, 429, 500, 503]) expect((await send({ to }, refusal(status, {}))).requests).toHaveLength(1)
  })
})

describe('failures', () => {
  test('show the explanation of the server from any of its places', async () => {
    const messageOf = async (body: unknown) => ((await send({}, refusal(400, body))).outcome as AppError).message
    expect(await messageOf({ ocs: { meta: { message: 'no' }, data: { error: 'x' } } })).toBe('roomchat answered 400: no')
    expect(await messageOf({ ocs: { meta: { message: null }, data: { error: 'message' } } })).toBe('roomchat answered 400: message')
    expect(await messageOf({ message: 'CSRF check failed' })).toBe('roomchat answered 400: CSRF check failed')
    expect(await messageOf([])).toBe('roomchat answered 400')
  })

  test('report maintenance with Retry-After as unavailable', async () => {
    const maintenance = () => new Response('', { status: 503, headers: { 'retry-after': '120' } })
    expect((await send({}, maintenance)).outcome).toMatchObject({ code: 'unavailable', retryAfterSecs: 120 })
  })

  test('reject an address that is not a room without a request', async () => {
    for (const room of ['', '..', 'a/b', 'a?b', '\ud83d']) {
      const { outcome, requests } = await send({ to: { to: room } })
      expect(outcome).toBeInstanceOf(AppError)
      expect([(outcome as AppError).code, requests.length]).toEqual(['invalid_request', 0])
    }
  })
})

/** `sluice webhook send --channel` and `sluice webhook check`, against a server that answers as the daemon does. */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { shownInboxEntry, shownInboxRow } from '@sluice/delivery/inspector'
import { scratch } from '@sluice/qa/daemons/bundle'
import { sluiceWith } from '@sluice/qa/daemons/run-command'
import { TEST_CHAT, type TestChannelOptions, testChannel } from '@sluice/qa/daemons/test-channel'
import { startWebhookServer, type WebhookServerOptions } from '@sluice/qa/daemons/webhook-server'
import { type Channel, defineFeature, type Store, type Webhook } from '@sluice/sdk'
import { afterEach, describe, expect, test } from 'vitest'
import { explainNoAnswer } from './exchange.ts'
import type { Inbox } from './follow-message.ts'
import { isSuccess, messageOutcome } from './message-outcome.ts'

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

const SECRET = 'test-chat-secret'
const SERVED = { verify_token: 'let me in', webhook_secret: SECRET, allowed_users: ['alice'] }
const OFFLINE = defineFeature({
  id: 'provider-offline',
  build: () => ({ providers: [{ kinds: ['offline'], load: async () => ({}) as never }] }),
})

interface Setting extends Partial<Pick<WebhookServerOptions, 'work'>>, Omit<TestChannelOptions, 'send'> {
  /** The configuration of the command; default: the configuration of the server. */
  readonly toml?: string
  /** The section of the server. */
  readonly served?: Readonly<Record<string, unknown>>
}

async function arrange({ toml = TEST_CHAT, served = SERVED, work = answered, ...options }: Setting = {}) {
  const { dir, dispose } = scratch(`[provider]\nkind = "offline"\n${toml}`)
  cleanups.push(dispose)
  const feature = testChannel(options)
  const server = await startWebhookServer({ dataDir: dir, feature, config: served, work })
  cleanups.push(server.close)
  const run = sluiceWith([OFFLINE, feature])
  const sluice = (...argv: string[]) => run(...argv, '--data-dir', dir)
  const send = (...argv: string[]) => sluice('webhook', 'send', '--channel', 'testchat', '--url', server.url, ...argv)
  const check = (...argv: string[]) => sluice('webhook', 'check', ...argv)
  return { sluice, send, check, url: server.url, store: server.store }
}

/** Runs the turn and sends its reply; with `lost`, the reply fails. */
async function answered(store: Store, number: number, lost?: { state: 'dead'; error: string }): Promise<void> {
  const turnId = `turn-${number}`
  const started = await store.inbox.start(number, turnId, 5)
  if (!started || 'spent' in started) return
  const { session, message } = started
  const { account, to, text } = message
  const reply = { channel: 'testchat', account, to, text: `re: ${text}`, part: 1, parts: 1, clientId: 'c1', turnId, createdAtMs: 1 }
  const [sent = 0] = await store.turns.finish({
    id: turnId,
    agent: 'main',
    sessionId: session,
    source: 'testchat',
    status: 'done',
    input: text,
    response: `re: ${text}`,
    model: 'echo',
    error: null,
    inputTokens: 1,
    outputTokens: 1,
    costUsd: 0,
    attempts: 1,
    createdAtMs: 1,
    endedAtMs: 2,
    messages: [],
    delivery: { inbox: number, replies: [reply] },
  })
  await store.outbox.start(sent)
  if (lost) await store.outbox.giveUp(sent, { ...lost, atMs: 3 })
  else await store.outbox.sent(sent, { providerId: 'p1', atMs: 3 })
}

describe('webhook send --channel', () => {
  test('sends as the first allowed sender, and follows the message to its reply', async () => {
    const { send, store } = await arrange()
    const { code, out, err } = await send('good morning')
    expect({ code, err }).toMatchObject({ code: 0 })
    expect(out).toMatch(/^200 accepted as message 1 \(\d+ ms\)\nre: good morning\nreply 1 sent as p1\n$/)
    expect(err).toMatch(/^POST http:\/\/127\.0\.0\.1:\d+\/testchat as alice, message id sluice-\S+\n/)
    expect(err).toMatch(/^message 1: done$/m)
    expect(await store.inbox.get(1)).toMatchObject({ sender: 'alice', verdict: 'x-signature', message: { text: 'good morning' } })
    expect(out + err).not.toContain(SECRET)
  })

  test('reports a second message with the same id as a duplicate', async () => {
    const { send } = await arrange()
    expect((await send('--id', 'm1')).out).toContain('accepted as message 1')
    const { code, out } = await send('--id', 'm1', '--json')
    expect(code).toBe(0)
    expect(JSON.parse(out)).toMatchObject({
      status: 200,
      verdict: 'duplicate',
      message_id: 'm1',
      inbox: { number: 1, replies: [{ state: 'sent' }] },
    })
  })

  test('names the key to change for a sender who is not allowed', async () => {
    const { send } = await arrange()
    const { code, out } = await send('--sender', 'mallory')
    expect(code).toBe(1)
    expect(out).toContain('mallory may not use the agent: add it to allowed_users in [channels_config.testchat]')
  })

  test('--bad-signature succeeds if the daemon refuses the request', async () => {
    const { send, store } = await arrange()
    const { code, out } = await send('--bad-signature')
    expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/^401 refused, as a corrupt request must be/) })
    expect(await store.inbox.list({ limit: 1 })).toEqual([])
  })

  test('explains a refusal because of different secrets', async () => {
    const { send } = await arrange({ served: { ...SERVED, webhook_secret: 'another' } })
    const { code, out } = await send('--json')
    expect(code).toBe(1)
    expect(JSON.parse(out)).toMatchObject({
      status: 401,
      verdict: 'refused',
      detail: expect.stringContaining('another secret'),
      inbox: null,
    })
  })

  test('--wait 0 does not wait for a reply', async () => {
    const { send } = await arrange({ work: async () => {} })
    expect(await send('--wait', '0')).toMatchObject({ code: 0, out: expect.stringContaining("not over yet; see 'sluice inbox show 1'") })
  })

  test('fails without a reply in time, and without a stored message', async () => {
    const { send, store } = await arrange({ work: async () => {} })
    await send('--wait', '0', '--id', 'm1')
    const answer = { status: 200, text: '{"status":"ok"}', tookMs: 1, location: null }
    const webhook = { path: '/testchat' } as unknown as Webhook
    const channel = { name: 'testchat', allow: ['*'], webhook } as unknown as Channel
    const request = { method: 'POST', url: new URL('http://127.0.0.1/testchat') } as const
    const ready = { channel, section: 'channels_config.testchat', allowKey: 'allowed_users' }
    const inbox: Inbox = {
      list: async (query) => (await store.inbox.list(query)).map(shownInboxRow),
      async get(number) {
        const entry = await store.inbox.get(number)
        return entry && shownInboxEntry(entry, undefined)
      },
    }
    const sent = { inbox, ready, webhook, request, answer, sender: 'alice', after: 0, waitMs: 20, onProgress: () => {} }
    const late = await messageOutcome({ ...sent, id: 'm1', signal: new AbortController().signal })
    expect([late.verdict, isSuccess(late, 20, false)]).toEqual(['accepted', false])
    const lost = await messageOutcome({ ...sent, id: 'm2', signal: AbortSignal.abort() })
    expect([lost.verdict, isSuccess(lost, 20, false)]).toEqual(['ignored', false])
  })

  test('fails if the message runs out of attempts', async () => {
    const { send } = await arrange({
      async work({ inbox }, number) {
        await inbox.start(number, 'turn-1', 5)
        await inbox.markDead(number, { error: 'no model answers', atMs: 1 })
      },
    })
    expect(await send()).toMatchObject({ code: 1, out: expect.stringContaining('given up: no model answers') })
  })

  test('succeeds for a notification after which the daemon fetches the message', async () => {
    const { send } = await arrange({ fetched: true })
    const { code, out } = await send('--sender', 'mallory')
    expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/^200 accepted: .* the daemon fetches the message itself/) })
  })

  test('finds the message of a request at a channel that also fetches messages', async () => {
    const { send } = await arrange({ listens: true })
    expect(await send('good morning')).toMatchObject({ code: 0, out: expect.stringContaining('accepted as message 1') })
  })

  test.each([
    ['an own text', 'received'],
    ['an empty body', ''],
  ])('accepts %s as the answer of the channel', async (_what, answers) => {
    const { send, check, url } = await arrange({ answers })
    expect(await send()).toMatchObject({ code: 0, out: expect.stringContaining('accepted as message 1') })
    const { code, out } = await check('--public-url', url, '--json')
    expect([code, lines(out).slice(-2)]).toEqual([
      0,
      [
        ['signed request', 'ok', 'is accepted'],
        ['corrupt request', 'ok', 'is refused with 401'],
      ],
    ])
    const other = await startOtherServer((_, response) => response.end('<html>hello</html>'))
    expect(await send('--url', other)).toMatchObject({ code: 1, out: expect.stringContaining('in a form that Sluice does not use') })
  })

  test('names the target of the reply: the sender, a named room, or none', async () => {
    const plain = await arrange()
    expect((await plain.send()).err).toContain('a reply is really sent, to alice')
    expect(await plain.send('--to', 'r1')).toMatchObject({ code: 2, err: expect.stringContaining('--to does nothing here') })
    const rooms = await arrange({ rooms: true })
    const sent = await rooms.send('--to', 'r1', '--json')
    expect([sent.code, (await rooms.store.inbox.get(1))?.session]).toEqual([0, 'channel:testchat/r1'])
    expect(sent.err).toContain('a reply is really sent, to r1')
    expect((await rooms.send()).err).toContain('the reply cannot arrive, because no conversation is named: add --to')
  })

  test('fails for a lost reply only if the reply could have arrived', async () => {
    const lose = async (store: Store, number: number) => {
      await answered(store, number, { state: 'dead', error: 'no such room' })
    }
    const { send } = await arrange({ rooms: true, work: lose })
    expect(await send()).toMatchObject({ code: 0, out: expect.stringContaining('no such room') })
    expect((await send('--to', 'r1')).code).toBe(1)
  })

  test.each([
    [['--channel', 'nochat'], 1, "there is no channel 'nochat'; ready are: testchat"],
    [['--channel', 'testchat', '--token-file', 'x'], 2, '--token-file does not go with --channel'],
    [['--channel', 'testchat', '--wait', 'long'], 2, '--wait wants a whole number from 0 to 3600'],
    [['hello', '--sender', 'x'], 2, '--sender goes with --channel'],
    [['hello', '--url', 'ftp://x'], 2, '--url wants an address'],
    [[], 2, '<message> is missing'],
  ])('%j fails with exit code %i and one line', async (argv, code, piece) => {
    const { sluice, url } = await arrange()
    const ran = await sluice('webhook', 'send', '--url', url, ...argv)
    expect(ran).toMatchObject({ code, out: '', err: expect.stringContaining(piece) })
    expect(ran.err.trim().split('\n')).toHaveLength(1)
  })

  test('explains a channel that is not configured', async () => {
    const { send } = await arrange({ toml: '' })
    expect(await send()).toMatchObject({ code: 1, err: expect.stringContaining('testchat is not ready: ') })
  })

  test('--bad-signature is refused without a configured secret', async () => {
    const { send } = await arrange({ toml: '[channels_config.testchat]\nverify_token = "let me in"\n' })
    expect(await send('--bad-signature')).toMatchObject({ code: 1, err: expect.stringContaining('webhook_secret is not set') })
  })
})

interface Line {
  readonly channel: string | null
  readonly check: string
  readonly status: string
  readonly detail: string
  readonly took_ms: number | null
}

const lines = (out: string) => (JSON.parse(out) as Line[]).map(({ check, status, detail }) => [check, status, detail])

/** Starts a server that is not Sluice; returns its address. */
async function startOtherServer(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanups.push(() => {
    server.closeAllConnections()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('webhook check', () => {
  test('sends a handshake, a signed and a corrupt request, and starts no turn', async () => {
    const { check, url, store } = await arrange()
    const { code, out } = await check('--public-url', `${url}/`, '--json')
    expect(code).toBe(0)
    expect(lines(out)).toEqual([
      ['public URL', 'ok', url],
      ['secret', 'ok', 'set: every request is verified'],
      ['allowlist', 'ok', '1 sender may use the agent'],
      ['register', 'ok', `${url}/testchat`],
      ['handshake', 'ok', 'the challenge comes back'],
      ['signed request', 'ok', 'is accepted'],
      ['corrupt request', 'ok', 'is refused with 401'],
    ])
    expect((JSON.parse(out) as Line[]).slice(-3).map(({ took_ms }) => typeof took_ms)).toEqual(['number', 'number', 'number'])
    expect(out).not.toContain(SECRET)
    expect(await store.inbox.list({ limit: 1 })).toEqual([])
  })

  test('without a public URL, checks only the settings', async () => {
    const { check } = await arrange()
    const { code, out } = await check()
    expect(code).toBe(0)
    expect(out).toMatch(/^warn +public URL +not set, so the way from outside is not tried$/m)
    expect(out).toMatch(/^ok +testchat +register +<public URL>\/testchat$/m)
  })

  test('uses the configured public URL, with its path', async () => {
    const served = await startOtherServer((request, response) => response.writeHead(404).end(request.url))
    const { check } = await arrange({ toml: `[gateway]\npublic_url = "${served}/sluice/"\n${TEST_CHAT}` })
    const { code, out } = await check('--json')
    expect(code).toBe(1)
    expect(lines(out)).toContainEqual(['register', 'ok', `${served}/sluice/testchat`])
  })

  test('fails for a missing secret, and warns about an empty or open allowlist', async () => {
    const unsigned = await arrange({ toml: '[channels_config.testchat]\nverify_token = "let me in"\n' })
    const { code, out } = await unsigned.check()
    expect(code).toBe(1)
    expect(out).toMatch(/^fail +testchat +secret +channels_config\.testchat\.webhook_secret is not set: anyone can post as the platform$/m)
    expect(out).toContain('sluice config set channels_config.testchat.webhook_secret\n')
    expect(out).toMatch(/^warn +testchat +allowlist +channels_config\.testchat\.allowed_users is empty: every message is dropped$/m)
    const open = await arrange({ toml: TEST_CHAT.replace('"alice"', '"alice", "*"') })
    expect((await open.check()).out).toContain('has a *: anyone can use the agent')
  })

  test('recognizes a daemon with another secret, another token or no secret', async () => {
    const other = await arrange({ served: { ...SERVED, webhook_secret: 'another', verify_token: 'another' } })
    const found = await other.check('--public-url', other.url, '--json')
    expect(found.code).toBe(1)
    expect(lines(found.out).slice(-3)).toEqual([
      ['handshake', 'fail', 'it answers 403: the daemon there has another verify token'],
      ['signed request', 'fail', expect.stringContaining('another secret')],
      ['corrupt request', 'ok', 'is refused with 401'],
    ])
    const { webhook_secret: _, ...none } = SERVED
    const open = await arrange({ served: none })
    expect(lines((await open.check('--public-url', open.url, '--json')).out).at(-1)).toEqual([
      'corrupt request',
      'fail',
      'it is accepted all the same: the daemon there has no secret',
    ])
  })

  test('sends a handshake without a challenge if its form is unknown', async () => {
    const { check, url } = await arrange({ silent: true })
    const { code, out } = await check('--public-url', url, '--json')
    expect(code).toBe(0)
    expect(lines(out)).toContainEqual(['handshake', 'ok', 'is answered'])
  })

  test.each<[what: string, listener: RequestListener, detail: string]>([
    ['another server', (_, response) => response.end('<html>hello</html>'), 'it answers 200 in a form that Sluice does not use'],
    [
      'a missing page',
      (_, response) => response.writeHead(404).end('<html>no</html>'),
      'it answers 404 in a form that Sluice does not use',
    ],
    [
      'a daemon without the channel',
      (_, response) => response.writeHead(404).end('{"error":"There is nothing here","code":"not_found"}'),
      'the daemon there does not serve this path (There is nothing here)',
    ],
    ['a page with a password', (_, response) => response.writeHead(401).end('<html>no</html>'), 'something in front of the daemon'],
    ['a firewall', (_, response) => response.writeHead(403).end('<html>no</html>'), 'something in front of the daemon'],
    ['a redirect', (_, response) => response.writeHead(301, { location: 'https://elsewhere' }).end(), 'a redirect to https://elsewhere'],
    ['a proxy without its daemon', (_, response) => response.writeHead(502).end('<html>'), 'a proxy on the way does not reach the daemon'],
    [
      'a daemon with a full disk',
      (_, response) => response.writeHead(503).end('{"error":"The disk is full","code":"unavailable"}'),
      'it answers 503: The disk is full',
    ],
    ['a connection that breaks', (request) => request.socket.destroy(), 'broke'],
  ])('distinguishes %s from the daemon', async (_what, listener, detail) => {
    const { check } = await arrange()
    const { code, out } = await check('--public-url', await startOtherServer(listener), '--json')
    expect(code).toBe(1)
    const [, , , , handshake] = lines(out)
    expect(handshake).toEqual(['handshake', 'fail', expect.stringContaining(detail)])
  })

  test('fails for a channel with a missing setting, and names the setting', async () => {
    const { check } = await arrange({ missingConfig: 'a token' })
    const { code, out } = await check('--json')
    expect([code, lines(out)[1]]).toEqual([1, ['channel', 'fail', 'cannot work without a token']])
  })

  test('does not mistake a password prompt for a refusal by the daemon', async () => {
    const { check, send } = await arrange({ silent: true })
    const url = await startOtherServer((_, response) => response.writeHead(401, { 'www-authenticate': 'Basic' }).end('<html>no</html>'))
    const found = lines((await check('--public-url', url, '--json')).out).slice(-2)
    expect(found).toEqual(
      ['signed request', 'corrupt request'].map((name) => [name, 'fail', expect.stringContaining('something in front of the daemon')]),
    )
    for (const more of [[], ['--bad-signature']]) {
      expect(await send('--url', url, ...more)).toMatchObject({ code: 1, out: expect.stringContaining('something in front of the daemon') })
    }
  })

  test('requires a refusal if only the platform can sign a request', async () => {
    const { check, send, url } = await arrange({ foreign: true })
    const { code, out } = await check('--public-url', url, '--json')
    expect(code).toBe(0)
    const refused = [
      'unverified request',
      'ok',
      'is refused with 401; only the platform can sign one, so its first request will show the rest',
    ]
    expect(lines(out).slice(-2)).toEqual([['handshake', 'ok', 'the challenge comes back'], refused])
    expect(await send()).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^401 refused, as it must be: only the platform can sign/),
    })
    const { webhook_secret: _, ...none } = SERVED
    const open = await arrange({ foreign: true, served: none })
    const taken = await open.check('--public-url', open.url, '--json')
    expect([taken.code, lines(taken.out).at(-1)?.[1]]).toEqual([1, 'fail'])
  })

  test('warns if another address is registered with the platform', async () => {
    const registered = 'http://127.0.0.1:1/testchat'
    const { check, url } = await arrange({ registered })
    const { out } = await check('--public-url', url, '--json')
    expect(lines(out)).toContainEqual(['register', 'warn', `${registered} is registered, but the address of the daemon is ${url}/testchat`])
    const same = await arrange({ registered, toml: `[gateway]\npublic_url = "http://127.0.0.1:1/"\n${TEST_CHAT}` })
    const config = lines((await same.check('--json')).out)
    expect(config).toContainEqual(['register', 'ok', registered])
  })

  test('recognizes a server without TLS and an address without a server', async () => {
    const { check } = await arrange()
    const plain = await startOtherServer((_, response) => response.end())
    const why = async (url: string) => lines((await check('--public-url', url, '--json')).out).at(-1)?.[2]
    expect(await why(plain.replace('http:', 'https:'))).toContain('no TLS connection to 127.0.0.1')
    await cleanups.pop()?.()
    expect(await why(plain)).toBe(`nothing listens on ${new URL(plain).host}`)
  })

  test.each([
    ['ENOTFOUND', 'the name gateway.example is not found in DNS (ENOTFOUND)'],
    ['EAI_AGAIN', 'the name gateway.example is not found in DNS (EAI_AGAIN)'],
    ['ECONNREFUSED', 'nothing listens on gateway.example:8443'],
    ['CERT_HAS_EXPIRED', 'no TLS connection to gateway.example:8443: it failed (CERT_HAS_EXPIRED)'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'no TLS connection to gateway.example:8443: it failed (DEPTH_ZERO_SELF_SIGNED_CERT)'],
    ['HPE_INVALID_CONSTANT', 'what listens on gateway.example:8443 does not speak HTTP'],
    ['ECONNRESET', 'the connection to gateway.example:8443 broke (ECONNRESET)'],
  ])('explains %s', (code, words) => {
    const error = new TypeError('fetch failed', { cause: Object.assign(new Error('it failed'), { code }) })
    expect(explainNoAnswer(new URL('https://gateway.example:8443/x'), error)).toBe(words)
  })

  test('sends no request to a public address without https', async () => {
    const { check } = await arrange()
    const { code, out } = await check('--public-url', 'http://gateway.example.com', '--json')
    expect(code).toBe(1)
    expect(lines(out)).toHaveLength(4)
    expect(lines(out)[0]).toEqual(['public URL', 'fail', expect.stringContaining('is not https')])
    expect(await check('--public-url', 'gateway')).toMatchObject({ code: 2 })
  })

  test('lists channels that are not configured in one line', async () => {
    const { check } = await arrange({ toml: '' })
    const { code, out } = await check()
    expect(code).toBe(0)
    expect(out).toContain('no channel with a webhook is ready\nnot configured: testchat\n')
  })
})

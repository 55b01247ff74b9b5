import { callProvider } from '@sluice/kit'
import {
  AppError,
  type Channel,
  defineFeature,
  type Feature,
  hmacSha256,
  type Inbound,
  isFresh,
  overheardPart,
  type Parts,
  type Raw,
  type Secret,
  secretText,
  verifyHmac,
} from '@sluice/sdk'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { type ChannelFixture, type ChannelSubject, channelConformance, channelRules } from './channel.ts'
import { brokenRules } from './rules.ts'

const SECRET = 'sample-webhook-secret'
const TOKEN = 'sample-api-token'
const API = 'http://127.0.0.1:9/send'

const section = {
  path: 'channels_config.sample',
  schema: v.object({
    webhook_secret: v.optional(secretText()),
    token: secretText(),
    verify_token: v.string(),
    bot_name: v.string(),
    allowed_users: v.optional(v.array(v.string()), []),
    mention_only: v.optional(v.boolean(), false),
  }),
}
const bodySchema = v.object({
  bot: v.string(),
  events: v.array(v.object({ id: v.string(), from: v.string(), room: v.string(), text: v.optional(v.string()) })),
})

/** A channel that keeps every rule; a test breaks one by changing a member. */
const feature = (
  change: (channel: Channel, tools: Tools) => Partial<Channel> = () => ({}),
  parts: (built: Parts) => Parts = (built) => built,
): Feature =>
  defineFeature({
    id: 'x-sample',
    section,
    build(host, config) {
      const { webhook_secret: secret } = config
      const refused = (why: string): never => {
        host.log.warn('a request was refused', { why })
        throw new AppError('unauthorized', 'Invalid signature', { cause: why })
      }
      const channel: Channel = {
        name: 'sample',
        allow: config.allowed_users,
        normalise: (sender) => sender.toLowerCase(),
        limits: { text: 500, unit: 'utf16', dedupesClientIds: true },
        webhook: {
          path: '/sample',
          ...(secret ? {} : { unsigned: 'webhook_secret' }),
          handshakeQuery: (challenge) => ({ token: config.verify_token, challenge }),
          handshake(url) {
            if (url.searchParams.get('token') !== config.verify_token) return new Response('Forbidden', { status: 403 })
            const challenge = url.searchParams.get('challenge')
            return challenge === null ? new Response('no challenge', { status: 400 }) : new Response(challenge)
          },
          verify({ headers, body, receivedAtMs }) {
            if (!secret) return { by: 'nothing: webhook_secret is not set' }
            const { 'x-time': time = '', 'x-signature': signature = '' } = headers
            if (!isFresh(Number(time), receivedAtMs, 300)) refused('the time is missing or too far away')
            if (!verifyHmac(secret.reveal(), [time, '.', body], signature, { prefix: 'sha256=' })) refused('the signature is wrong')
            return { by: 'x-signature' }
          },
          parse: ({ body }) =>
            parseSample(body, config.bot_name).map((message) => ({ ...message, ...overheardPart(message, config.mention_only) })),
          sample({ sender, text, id, atMs, ignored }) {
            const payload = { bot: 'helper', events: [{ id, from: sender, room: 'room7', ...(!ignored && { text }) }] }
            const json = JSON.stringify(payload)
            return { headers: secret ? signed(secret.reveal(), json, atMs) : {}, body: json }
          },
        },
        async send(to, { text, clientId }, signal) {
          const { json } = await callProvider({
            fetch: host.fetch,
            provider: 'sample',
            url: API,
            method: 'POST',
            headers: { authorization: `Bearer ${config.token.reveal()}` },
            body: { to, text, clientId },
            signal,
          })
          const answer = v.safeParse(v.object({ id: v.string() }), json)
          if (!answer.success) throw new AppError('upstream', 'the answer of the platform has no id')
          return { id: answer.output.id }
        },
        health: () => ({ state: 'ok' }),
      }
      const listen: Channel['listen'] = async (deliver, { signal, report }) => {
        const response = await host.fetch(API, { signal }).catch(() => undefined)
        const events = (await response?.json().catch(() => [])) as Inbound[]
        report.connected()
        for (const event of events ?? []) await deliver({ ...event, ...overheardPart(event, config.mention_only) }).catch(() => undefined)
        await host.clock.sleep(3_600_000, signal)
      }
      const whole = { ...channel, listen }
      return parts({
        channels: [{ ...whole, ...change(whole, { log: (message) => host.log.info(message), fetch: host.fetch, secret }) }],
      })
    },
  })

interface Tools {
  log(message: string): void
  readonly fetch: typeof fetch
  readonly secret: Secret | undefined
}

function signed(secret: string, body: Uint8Array | string, atMs: number) {
  const time = String(Math.floor(atMs / 1000))
  return { 'X-Time': time, 'X-Signature': `sha256=${hmacSha256(secret, time, '.', body).toString('hex')}` }
}

function parseSample(body: Uint8Array, botName: string): Inbound[] {
  let json: unknown
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    throw new AppError('invalid_request', 'Invalid JSON payload')
  }
  const parsed = v.safeParse(bodySchema, json)
  if (!parsed.success) throw new AppError('invalid_request', 'Invalid payload')
  const { bot, events } = parsed.output
  if (bot === '') return []
  return events
    .filter(({ id, from, room, text }) => text !== undefined && from !== botName && id !== '' && from !== '' && room !== '')
    .map(({ id, from, room, text = '' }) => ({ id, account: bot, sender: from, to: { to: room }, addressed: 'overheard', text }))
}

const inbound: Inbound = { id: 'm1', account: 'helper', sender: 'Alice', to: { to: 'room7' }, addressed: 'overheard', text: 'hi' }
const body = (events: object[]) => JSON.stringify({ bot: 'helper', events })
const fixtures: ChannelFixture[] = [
  {
    name: 'text',
    headers: { 'content-type': 'application/json' },
    body: body([{ id: 'm1', from: 'Alice', room: 'room7', text: 'hi' }]),
    expect: [inbound],
  },
  { name: 'own', headers: {}, body: body([{ id: 'm2', from: 'helper', room: 'room7', text: 'hi' }]), expect: [] },
  { name: 'reaction', headers: {}, body: body([{ id: 'm3', from: 'Alice', room: 'room7' }]), expect: [] },
]

const subject = (under: Feature): ChannelSubject => ({
  feature: under,
  config: { webhook_secret: SECRET, token: TOKEN, verify_token: 'check-me', bot_name: 'helper', allowed_users: ['alice'] },
  allowKey: 'allowed_users',
  secrets: [SECRET, TOKEN],
  webhook: {
    fixtures,
    own: 'own',
    secretKey: 'webhook_secret',
    prove: (bytes, atMs) => ({ headers: signed(SECRET, bytes, atMs) }),
    handshake: { query: { token: 'check-me', challenge: '12345' }, tokenKey: 'token', challengeKey: 'challenge' },
  },
  send: { to: { to: 'room7' }, answer: () => Response.json({ id: 's1' }), id: 's1' },
  listen: { host: () => ({ fetch: async () => Response.json([inbound]) }), expect: [inbound] },
})

channelConformance(subject(feature()))

/** The sample feature with changed members of its webhook. */
const webhook = (change: (hook: NonNullable<Channel['webhook']>, tools: Tools) => Partial<NonNullable<Channel['webhook']>>) =>
  feature(({ webhook: hook }, tools) => (hook ? { webhook: { ...hook, ...change(hook, tools) } } : {}))

const verifyOr = (excuse: (raw: Raw) => boolean) =>
  webhook(({ verify }) => ({ verify: (raw) => (excuse(raw) ? { by: 'an excuse' } : verify(raw)) }))
const verifyAfter = (step: (raw: Raw, tools: Tools) => void) =>
  webhook(({ verify }, tools) => ({
    verify(raw) {
      step(raw, tools)
      return verify(raw)
    },
  }))
const text = ({ body }: Raw) => new TextDecoder().decode(body)
let replays = 0

describe('a broken channel breaks its rule', () => {
  test.each<[rule: string, under: Feature]>([
    ['name and section equal the catalogue row', feature(() => ({ name: 'simple' }))],
    ['name and section equal the catalogue row', { ...feature(), id: 'channel-roomchat' }],
    ['routes equal the catalogue row', { ...feature(), id: 'channel-roomchat' }],
    ['build does no I/O', feature((_channel, { log }) => ({ health: log('hello') as undefined }) as object)],
    ['limits are positive integers', feature(() => ({ limits: { text: 0, unit: 'byte' } }))],
    ['the allowlist equals the configured one, even when empty', feature(({ allow }) => ({ allow: allow.length > 0 ? allow : ['*'] }))],
    ['health makes no calls', feature((_channel, { log }) => ({ health: () => ({ state: 'ok', detail: String(log('asking')) }) }))],
    ['close may be called twice', feature(undefined, (built) => ({ ...built, close: onlyOnce() }))],
    [
      'each fixture parses to its expected messages',
      webhook(({ parse }) => ({ parse: async (raw) => (await parse(raw)).map((m) => ({ ...m, text: '' })) })),
    ],
    ['the handshake accepts the query the channel builds', webhook(() => ({ handshakeQuery: () => ({}) }))],
    [
      'every message has all its parts and an id unique in its payload',
      webhook(({ parse }) => ({ parse: async (raw) => (await parse(raw)).map((m) => ({ ...m, account: '' })) })),
    ],
    [
      'every message has all its parts and an id unique in its payload',
      webhook(({ parse }) => ({ parse: async (raw) => [...(await parse(raw)), ...(await parse(raw))] })),
    ],
    [
      'every message says how it is addressed',
      webhook(({ parse }) => ({ parse: async (raw) => (await parse(raw)).map(({ addressed: _, ...m }) => m) })),
    ],
    [
      'a message has the time from which its reply window counts',
      feature(({ limits }) => ({ limits: { ...limits, replyWindow: { seconds: 60, after: 'closed' } } })),
    ],
    [
      'a message that is listened for has the time from which its reply window counts',
      feature(({ limits }) => ({ limits: { ...limits, replyWindow: { seconds: 60, after: 'closed' } } })),
    ],
    ['limits are positive integers', feature(({ limits }) => ({ limits: { ...limits, replyWindow: { seconds: 0, after: 'closed' } } }))],
    ["the bot's own messages are ignored", webhook(() => ({ parse: ({ body }) => parseSample(body, 'somebody-else') }))],
    [
      'a replayed request yields the same message ids',
      webhook(({ parse }) => ({ parse: async (raw) => (await parse(raw)).map((m) => ({ ...m, id: `${m.id}-${replays++}` })) })),
    ],
    [
      'the gateway applies the allowlist, not the channel',
      feature(({ webhook: hook, allow }) =>
        hook
          ? {
              webhook: {
                ...hook,
                parse: async (raw) => (await hook.parse(raw)).filter(({ sender }) => allow.includes(sender.toLowerCase())),
              },
            }
          : {},
      ),
    ],
    ['normalising a sender twice changes nothing', feature(() => ({ normalise: (sender) => `+${sender}` }))],
    ['a request with a valid proof is accepted', webhook(() => ({ verify: () => refuse('Invalid signature') }))],
    ['the proof covers the raw bytes of any body', verifyAfter((raw) => void JSON.parse(text(raw)))],
    ['any one changed byte of the body is unauthorized', verifyOr((raw) => text(raw).includes('"bot":"helper"'))],
    ['any one changed character of the proof is unauthorized', verifyOr(({ headers }) => headers['x-signature']?.endsWith('a') === true)],
    ['a missing or empty part of the proof is unauthorized', verifyOr(({ headers }) => !headers['x-signature'])],
    [
      'a stale proof is unauthorized, whether from the past or from the future',
      webhook(({ verify }) => ({ verify: (raw) => verify({ ...raw, receivedAtMs: Number(raw.headers['x-time']) * 1000 }) })),
    ],
    [
      'every refusal has the same message',
      webhook(({ verify }) => ({ verify: (raw) => (raw.headers['x-time'] ? verify(raw) : refuse('no time')) })),
    ],
    [
      'every refusal carries its reason for the log',
      webhook(({ verify }) => ({
        async verify(raw) {
          try {
            return await verify(raw)
          } catch {
            return refuse('Invalid signature')
          }
        },
      })),
    ],
    ['without a secret every request is accepted and the missing key is named', webhook(() => ({ unsigned: 'webhook_secret' }))],
    [
      'without a secret every request is accepted and the missing key is named',
      webhook(({ unsigned }) => (unsigned ? { unsigned: 'secret' } : {})),
    ],
    [
      'without a secret every request is accepted and the missing key is named',
      webhook(({ unsigned }) => (unsigned ? { verify: () => refuse('Invalid signature') } : {})),
    ],
    [
      'a sample request is accepted and parses to its message',
      webhook(({ sample }) => ({ sample: (wanted) => ({ ...sample(wanted), headers: {} }) })),
    ],
    [
      'a sample request is accepted and parses to its message',
      webhook(({ sample }) => ({ sample: (wanted) => sample({ ...wanted, text: 'hello' }) })),
    ],
    [
      'a sample request is accepted and parses to its message',
      webhook(({ sample }) => ({ sample: (wanted) => sample({ ...wanted, sender: 'somebody-else' }) })),
    ],
    [
      'a sample request is accepted and parses to its message',
      webhook(({ sample }) => ({ sample: ({ ignored, ...wanted }) => sample(wanted) })),
    ],
    [
      'any bytes parse to messages or fail with invalid_request',
      webhook(() => ({ parse: ({ body }) => JSON.parse(new TextDecoder().decode(body)).events.map(() => inbound) })),
    ],
    ['the handshake returns the challenge', webhook(() => ({ handshake: () => Response.json('12345') }))],
    [
      'a wrong handshake token is 403, a missing challenge 400',
      webhook(() => ({ handshake: (url) => new Response(url.searchParams.get('challenge')) })),
    ],
    ['any one changed byte of the body is unauthorized', verifyAfter((_raw, { log, secret }) => log(secret?.reveal() ?? ''))],
    ['send returns the message id of the platform', feature(() => ({ send: async () => ({ id: 'made up' }) }))],
    [
      'a text of the maximum length is sent in full',
      feature(({ send }) => ({ send: (to, message, signal) => send(to, { ...message, text: message.text.slice(0, 499) }, signal) })),
    ],
    [
      'a platform that drops duplicates receives the client id',
      feature(({ send }) => ({ send: (to, message, signal) => send(to, { ...message, clientId: '' }, signal) })),
    ],
    [
      'no id in an address changes the path of the request',
      feature((_channel, { fetch }) => ({
        async send({ to }, _message, signal) {
          await fetch(`http://127.0.0.1:9/rooms/${encodeURIComponent(to)}/messages`, { signal })
          return { id: 's1' }
        },
      })),
    ],
    ['429 is rate_limited with the requested wait', recoded((code) => (code === 'rate_limited' ? 'upstream' : code))],
    ['a refused message is never retried', recoded((code) => (code === 'invalid_request' ? 'unavailable' : code))],
    ['a message that never left is retried', recoded((code) => (code === 'unavailable' ? 'upstream' : code))],
    ['a message that may have arrived is neither retried nor refused', recoded((code) => (code === 'upstream' ? 'unavailable' : code))],
    [
      'any answer yields an id or an AppError',
      feature(({ send }) => ({ send: (...args) => send(...args).catch((error) => Promise.reject(new TypeError(error.message))) })),
    ],
    [
      'any answer yields an id or an AppError',
      feature(({ send }) => ({
        send: (...args) => send(...args).catch(() => Promise.reject(new AppError('upstream', `${API}?token=${TOKEN}`))),
      })),
    ],
    [
      'send ends promptly after an abort',
      feature(({ send }) => ({ send: (to, message) => send(to, message, new AbortController().signal) })),
    ],
    [
      'listen delivers the expected messages',
      feature(({ listen }) => ({
        listen: (deliver, context) => listen?.((m) => deliver({ ...m, id: 'x' }), context) ?? Promise.resolve(),
      })),
    ],
    [
      'where only messages to the bot are answered, another message arrives as `overheardOnly`',
      feature(({ listen }) => ({
        listen: (deliver, context) => listen?.(({ overheardOnly: _, ...m }) => deliver(m), context) ?? Promise.resolve(),
      })),
    ],
    [
      'where only messages to the bot are answered, another message arrives as `overheardOnly`',
      webhook(({ parse }) => ({ parse: async (raw) => (await parse(raw)).filter(({ overheardOnly }) => !overheardOnly) })),
    ],
    [
      'listen resolves promptly after an abort, with or without messages',
      feature(({ listen }) => ({
        listen: (deliver, context) => listen?.(deliver, { ...context, signal: new AbortController().signal }) ?? Promise.resolve(),
      })),
    ],
    [
      'listen resolves promptly after an abort, with or without messages',
      feature(({ listen }) => ({ listen: async (deliver, context) => listen?.(deliver, context).then(() => refuse('aborted')) })),
    ],
    [
      'a failed delivery causes no unhandled rejection',
      feature(() => ({ listen: async (deliver) => deliver(inbound).catch(() => Promise.reject(new TypeError('no'))) })),
    ],
  ])('%s', async (rule, under) => {
    const rules = channelRules(subject(under))
    expect(Object.keys(rules)).toContain(rule)
    expect(await brokenRules({ [rule]: rules[rule] ?? (() => {}) })).toEqual([rule])
  })
})

test.each([
  ['payload', [inbound]],
  ['none', [{ ...inbound, name: 'Ada' }]],
  ['lookup', [{ ...inbound, name: ' Ada' }]],
] as const)('names must arrive as a channel declares it: %s', async (names, expected) => {
  const rule = 'name: where the platform tells it, as the channel declares'
  const rules = channelRules({
    feature: feature(),
    config: {},
    allowKey: 'a',
    secrets: [],
    names,
    listen: { host: () => ({}), expect: expected },
  })
  expect(await brokenRules({ [rule]: rules[rule] ?? (() => {}) })).toEqual([rule])
})

const refuse = (detail: string): never => {
  throw new AppError('unauthorized', detail)
}

/** The sample feature with other error codes when sending fails. */
function recoded(change: (code: AppError['code']) => AppError['code']): Feature {
  return feature(({ send }) => ({
    send: (...args) => send(...args).catch((error: AppError) => Promise.reject(new AppError(change(error.code), error.message))),
  }))
}

const onlyOnce = () => {
  let isClosed = false
  return async () => {
    if (isClosed) throw new Error('closed already')
    isClosed = true
  }
}

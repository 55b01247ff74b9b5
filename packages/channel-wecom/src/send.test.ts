/** Messages of an app and of a group robot against the fake. */
import type { Attachment, Channel, Outbound } from '@sluice/sdk'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { wecomSection } from './config.ts'
import feature from './index.ts'
import { BOT, ROBOT_KEY, startWecomFake, type WecomFake } from './testing/fake.ts'
import { APP } from './testing/seal.ts'

const { signal } = new AbortController()
let fake: WecomFake
let clock: TestClock

const build = (config: object): Channel =>
  feature.build(testHost({ fetch, clock }), v.parse(wecomSection.schema, { api_url: fake.url, ws_url: fake.wsUrl, ...config }))
    .channels?.[0] as Channel
const send = (channel: Channel, to: string, message: Partial<Outbound> = {}) =>
  channel.send({ to }, { text: 'hello', clientId: 'c-1', ...message }, signal)
const file = (name: string, bytes: Uint8Array = Buffer.from('bytes')): Attachment => ({ kind: 'file', name, source: { bytes } })

beforeEach(async () => {
  clock = testClock(Date.UTC(2026, 0, 1))
  fake = await startWecomFake({ nowMs: clock.nowMs })
})
afterEach(() => fake.close())

describe('an app', () => {
  test('shares one token with others, and replaces one that has ended', async () => {
    const channel = build(APP)
    expect(await send(channel, 'user:ada')).toEqual({ id: 'msg-1' })
    await Promise.all([send(channel, 'user:ada'), send(channel, 'user:bob')])
    expect(fake.granted).toBe(1)
    fake.endTokens()
    await Promise.all([send(channel, 'user:ada'), send(channel, 'user:bob')])
    expect([fake.granted, fake.sent.length]).toEqual([2, 5])
  })

  test.each([
    [40_014, 'unavailable'],
    [-1, 'unavailable'],
    [45_009, 'rate_limited'],
    [60_020, 'forbidden'],
    [40_003, 'invalid_request'],
  ])('%i is %s', async (errcode, code) => {
    const body = { errcode, errmsg: 'no, hint: [1_2_token-1], from ip: 203.0.113.9' }
    fake.fail({ fault: 'status', status: 200, body }, { times: 2, matches: ({ path }) => path.endsWith('/send') })
    const error = await send(build(APP), 'user:ada').catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code, message: `wecom refused message/send: no (${errcode})` })
  })

  test('adds the name of the writer to a message, and looks it up once', async () => {
    const channel = build({ ...APP, allowed_users: ['ada'] })
    const { webhook } = channel
    if (!webhook) throw new Error('The app has no webhook')
    for (const id of ['1', '2']) {
      const { headers, query = {}, body } = webhook.sample({ sender: 'ada', text: 'hi', id, atMs: clock.nowMs() })
      const url = new URL(`http://localhost/wecom?${new URLSearchParams(query)}`)
      const raw = { headers, url, body: new TextEncoder().encode(body), receivedAtMs: clock.nowMs() }
      expect(await webhook.parse(raw)).toMatchObject([{ sender: 'ada', name: 'Name of ada' }])
    }
    expect(fake.requests.filter(({ path }) => path === '/cgi-bin/user/get')).toHaveLength(1)
  })

  test('reports a person who cannot get its messages', async () => {
    fake.unknown.add('eve')
    await expect(send(build(APP), 'user:eve')).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('with a wrong secret sends nothing, and the secret does not appear', async () => {
    fake.changeSecrets()
    const error = await send(build(APP), 'user:ada').catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'unavailable', message: expect.stringContaining('Check corp_id and app_secret') })
    fake.fail({ fault: 'reset' })
    const broken = await send(build(APP), 'user:ada').catch((thrown: unknown) => thrown)
    expect(broken).toMatchObject({ code: 'unavailable' })
    expect(`${error}${broken}`).not.toContain(APP.app_secret)
  })

  test('sends files by their type, and buttons as a card', async () => {
    const channel = build(APP)
    const buttons = [{ label: 'Approve', value: 'approve:1', tone: 'good' }] as const
    const attachments = [file('a.png'), file('big.png', Buffer.alloc(10 * 1024 * 1024 + 1)), file('a.amr'), file('a.mp4'), file('a.txt')]
    expect(await send(channel, 'user:ada', { attachments, buttons })).toEqual({ id: 'c-1' })
    expect(fake.sent.map(({ type }) => type)).toEqual(['text', 'template_card', 'image', 'file', 'voice', 'video', 'file'])
    expect(fake.sent[1]?.card).toEqual({ task: 'c-1', keys: ['approve:1'] })
    expect([...fake.uploads.values()].map(({ name, type }) => `${name} ${type}`)).toEqual([
      'a.png image',
      'big.png file',
      'a.amr voice',
      'a.mp4 video',
      'a.txt file',
    ])
  })

  test('leaves the outcome open when a part fails after the text', async () => {
    let posts = 0
    fake.fail(
      { fault: 'status', status: 200, body: { errcode: 40_007, errmsg: 'no' } },
      { matches: ({ path }) => path.endsWith('/send') && ++posts === 2 },
    )
    await expect(send(build(APP), 'user:ada', { attachments: [file('a.txt')] })).rejects.toMatchObject({ code: 'upstream' })
  })

  test('downloads files of people by their id, with a new token where it must', async () => {
    const channel = build(APP)
    fake.files.set('media-1', Buffer.from('meow'))
    const attachment = { kind: 'image', name: 'image', source: { id: 'media-1' } } as const
    await channel.fetchMedia?.(attachment, { bytesMax: 4, signal })
    fake.endTokens()
    const media = await channel.fetchMedia?.(attachment, { bytesMax: 4, signal })
    expect([Buffer.from(media?.bytes ?? []).toString(), media?.mime, fake.granted]).toEqual(['meow', 'image/png', 2])
    await expect(channel.fetchMedia?.(attachment, { bytesMax: 3, signal })).rejects.toMatchObject({ code: 'too_large' })
    await expect(channel.fetchMedia?.({ ...attachment, source: { id: 'gone' } }, { bytesMax: 4, signal })).rejects.toMatchObject({
      code: 'invalid_request',
    })
  })

  test('downloads files where another library has replaced the global Response', async () => {
    const original = globalThis.Response
    globalThis.Response = class extends original {}
    try {
      fake.files.set('media-1', Buffer.from('meow'))
      const attachment = { kind: 'image', name: 'image', source: { id: 'media-1' } } as const
      const media = await build(APP).fetchMedia?.(attachment, { bytesMax: 4, signal })
      expect(Buffer.from(media?.bytes ?? []).toString()).toBe('meow')
    } finally {
      globalThis.Response = original
    }
  })
})

describe('a group robot', () => {
  test('only sends, to its group', async () => {
    const channel = build({ webhook_key: ROBOT_KEY })
    expect(channel.listen).toBeUndefined()
    expect(await send(channel, 'robot', { text: 'done <@ada>' })).toEqual({ id: 'c-1' })
    expect(fake.sent).toEqual([{ via: 'robot', to: '', type: 'markdown', text: 'done <\u200B@ada>' }])
    await expect(send(channel, 'user:ada')).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('bot or app'),
    })
  })

  test('sends pictures and files', async () => {
    await send(build({ webhook_key: ROBOT_KEY }), 'robot', { attachments: [file('a.png'), file('b.txt')] })
    expect(fake.sent.map(({ type }) => type)).toEqual(['markdown', 'image', 'file'])
  })

  test('beyond twenty messages a minute waits, and with a wrong key is forbidden', async () => {
    const channel = build({ webhook_key: ROBOT_KEY })
    for (let sent = 0; sent < 20; sent++) await send(channel, 'robot')
    await expect(send(channel, 'robot')).rejects.toMatchObject({ code: 'rate_limited', retryAfterSecs: 60 })
    const error = await send(build({ webhook_key: 'wrong-key-0123456789' }), 'robot').catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'forbidden' })
    expect(String(error)).not.toContain('wrong-key')
  })

  test('takes a text of the longest length', async () => {
    const channel = build({ webhook_key: ROBOT_KEY })
    await send(channel, 'robot', { text: '字'.repeat(Math.floor(channel.limits.text / 3)) })
    expect(fake.sent).toHaveLength(1)
  })
})

describe('the section', () => {
  test.each([
    [{ bot_id: 'x' }, 'bot_secret'],
    [{ bot_secret: 'x' }, 'bot_id'],
    [{ corp_id: 'x', agent_id: 1 }, 'app_secret and callback_token and callback_aes_key'],
    [{ ...BOT, corp_id: 'x' }, 'agent_id and app_secret and callback_token and callback_aes_key'],
    [BOT, undefined],
    [APP, undefined],
    [{ webhook_key: 'x' }, undefined],
  ])('%j misses %s', (config, missing) => expect(build(config).missingConfig).toBe(missing))

  test('without a key of its three ways, the channel is off and names them', () => {
    const parts = feature.build(testHost(), v.parse(wecomSection.schema, {}))
    expect(parts.channels).toBeUndefined()
    expect(parts.disabledReason).toContain('bot_id and bot_secret, or the keys of an app (corp_id and others), or webhook_key')
  })

  test('a malformed EncodingAESKey is refused, and not shown', () => {
    const result = v.safeParse(wecomSection.schema, { callback_aes_key: 'too-short-key' })
    expect(result.success).toBe(false)
    expect(JSON.stringify(result.issues?.map(({ message }) => message))).not.toContain('too-short-key')
  })

  test('has a webhook only with an app, and a connection only with an AI bot', () => {
    const abilities = [BOT, APP, { ...BOT, ...APP }, { webhook_key: ROBOT_KEY }].map((config) => {
      const { webhook, listen } = build(config)
      return [webhook !== undefined, listen !== undefined]
    })
    expect(abilities).toEqual([
      [false, true],
      [true, false],
      [true, true],
      [false, false],
    ])
  })
})

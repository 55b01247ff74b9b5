/** Answers, proactive messages and files against the fake. */
import { hash } from 'node:crypto'
import type { Address, Attachment, Channel, Outbound } from '@sluice/sdk'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { qqSection } from './config.ts'
import feature from './index.ts'
import { parseEvent } from './parse.ts'
import { withoutMentions } from './send.ts'
import { BOT, type QqFake, type Said } from './testing/fake.ts'
import { connect } from './testing/section.ts'

const { signal } = new AbortController()
let fake: QqFake
let section: object
let clock: TestClock
let channel: Channel
let messages: number

const build = (more: object = {}) =>
  feature.build(testHost({ fetch, clock }), v.parse(qqSection.schema, { ...section, ...more })).channels?.[0] as Channel
/** Receives a message. Returns the address of its answer. */
const addressOf = (said: Said): Address => {
  const { type, data } = fake.event(said)
  const [inbound] = parseEvent(type, data, { account: BOT.app_id })
  if (!inbound) throw new Error('no message')
  return inbound.to
}
const send = (to: Address, message: Partial<Outbound> = {}) => {
  messages += 1
  return channel.send(to, { text: 'hello', clientId: `c-${messages}`, ...message }, signal)
}
const isMessage = ({ path }: { readonly path: string }) => path.endsWith('/messages')
const file = (name: string, bytes = Buffer.from('bytes')): Attachment => ({ kind: 'file', name, source: { bytes } })

beforeEach(async () => {
  clock = testClock(Date.UTC(2026, 0, 1))
  messages = 0
  const made = await connect({ nowMs: clock.nowMs })
  ;[fake, section] = [made.fake, made.section]
  channel = build()
})
afterEach(() => fake.close())

describe('an answer', () => {
  test('names its message, in each of its parts', async () => {
    const { replyTo: _, ...rest } = addressOf({ text: 'hi' })
    const to = addressOf({ text: 'hi', group: 'GROUP1' })
    await send(to)
    await send(rest)
    await send(rest)
    expect(fake.sent.map(({ kind, answers }) => [kind, answers])).toEqual([
      ['group', to.more?.msg],
      ['user', rest.more?.msg],
      ['user', rest.more?.msg],
    ])
  })

  test('after the window of its conversation is proactive', async () => {
    const [direct, group] = [addressOf({ text: 'hi' }), addressOf({ text: 'hi', group: 'GROUP1' })]
    await clock.advance(299_000)
    await send(group)
    await clock.advance(1000)
    await send(group)
    await send(direct)
    await clock.advance(3_300_000)
    await send(direct)
    expect(fake.sent.map(({ kind, answers }) => [kind, answers !== undefined])).toEqual([
      ['group', true],
      ['group', false],
      ['user', true],
      ['user', false],
    ])
  })

  test.each([
    ['user', 4],
    ['group', 5],
  ])('beyond the number for a %s is proactive', async (kind, count) => {
    const to = addressOf({ text: 'hi', ...(kind === 'group' && { group: 'GROUP1' }) })
    for (let sent = 0; sent <= count; sent++) await send(to)
    expect(fake.sent.map(({ answers }) => answers !== undefined)).toEqual([...Array<boolean>(count).fill(true), false])
    const limit = channel.limits.replyWindow
    expect(typeof limit === 'function' && limit(to).count).toBe(count)
  })

  test.each(['lost', 'garbage', 'cut'] as const)('whose outcome is unknown (%s) is repeated once, and arrives once', async (fault) => {
    const to = addressOf({ text: 'hi' })
    fake.fail({ fault }, { matches: isMessage })
    expect(await send(to)).toEqual({ id: 'answer-c-1' })
    expect(fake.sent).toHaveLength(1)
  })

  test('that was not sent arrives by its repeat', async () => {
    const to = addressOf({ text: 'hi' })
    fake.fail({ fault: 'reset' }, { matches: isMessage })
    fake.fail({ fault: 'status', status: 500, body: { message: 'later', code: 50_055_002 } }, { matches: isMessage })
    await expect(send(to)).rejects.toMatchObject({ code: 'upstream' })
    await send(to)
    expect(fake.sent).toHaveLength(1)
  })

  test('whose number another answer has by chance gets another one', async () => {
    const to = addressOf({ text: 'hi' })
    await send(to, { clientId: 'same' })
    await send(to, { clientId: 'same' })
    expect(fake.sent).toHaveLength(2)
  })
})

describe('a proactive message', () => {
  test.each([
    [200, 40_054_003, 'forbidden'],
    [400, 40_054_003, 'forbidden'],
    [200, 40_054_007, 'invalid_request'],
    [400, 40_034_100, 'rate_limited'],
    [500, 50_055_001, 'upstream'],
  ])('that is refused with %i and %i is %s', async (status, code, expected) => {
    fake.fail({ fault: 'status', status, body: { message: 'no', code } }, { matches: isMessage })
    await expect(send({ to: 'user:ADA' })).rejects.toMatchObject({ code: expected, message: expect.stringContaining(String(code)) })
  })

  test('of unknown outcome is not repeated, because QQ drops no repeats of it', async () => {
    fake.fail({ fault: 'lost' }, { matches: isMessage })
    await expect(send({ to: 'user:ADA' })).rejects.toMatchObject({ code: 'upstream' })
    expect(fake.sent).toHaveLength(1)
  })

  test('beyond the quota of a minute waits, and without permission is refused', async () => {
    for (let sent = 0; sent < 20; sent++) await send({ to: 'user:ADA' })
    await expect(send({ to: 'user:ADA' })).rejects.toMatchObject({ code: 'rate_limited', retryAfterSecs: 60 })
    fake.acceptsProactive = false
    await expect(send({ to: 'group:GROUP1' })).rejects.toMatchObject({ code: 'forbidden' })
  })

  test('needs an address of a known form', async () => {
    for (const to of ['ADA', 'user:', 'channel:1', 'user:..']) await expect(send({ to })).rejects.toMatchObject({ code: 'invalid_request' })
    expect(fake.requests).toEqual([])
  })
})

test('one token serves all requests, and one that QQ rejects is replaced', async () => {
  await Promise.all([send({ to: 'user:ADA' }), send({ to: 'user:BOB' })])
  expect(fake.granted).toBe(1)
  fake.endTokens()
  await Promise.all([send({ to: 'user:ADA' }), send({ to: 'user:BOB' })])
  expect([fake.granted, fake.sent.length]).toEqual([2, 4])
})

test('a wrong secret sends nothing, and does not appear', async () => {
  fake.changeSecret()
  const error = await send({ to: 'user:ADA' }).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'unavailable', message: expect.stringContaining('Check app_id and app_secret') })
  expect(String(error)).not.toContain(BOT.app_secret)
})

test('markdown and buttons are used where they are on', async () => {
  channel = build({ markdown: true })
  await send({ to: 'user:ADA' })
  channel = build({ buttons: true })
  const buttons = [
    { label: 'Approve it please', value: 'approve:1', tone: 'good' },
    { label: 'Deny', value: 'deny:1', tone: 'bad' },
  ] as const
  expect(await send(addressOf({ text: 'hi' }), { buttons })).toEqual({ id: 'c-2' })
  expect(fake.sent).toMatchObject([
    { markdown: true, buttons: [] },
    {
      markdown: true,
      buttons: [
        { id: 'c-2.0', label: 'Approve it', value: 'approve:1' },
        { id: 'c-2.1', label: 'Deny', value: 'deny:1' },
      ],
    },
  ])
})

test('no text of a model mentions a person', () => {
  for (const text of ['<@OPENID>', '<@!1>', '<qqbot-at-everyone />', '<qqbot-at-user id="1" />', '@everyone', '@all', '@全体成员']) {
    expect(withoutMentions(`x ${text} y`)).toBe(`x ${text.replace(/^([<@])/, '$1\u200B')} y`)
  }
  expect(withoutMentions('a <b> me@example.org')).toBe('a <b> me@example.org')
})

describe('files', () => {
  test('are uploaded in parts, with their hashes, and follow the text', async () => {
    const large = Buffer.alloc(11_000_000, 'x')
    const to = addressOf({ text: 'hi' })
    await send(to, { attachments: [file('cat.png'), file('log.txt', large)] })
    expect(fake.sent.map(({ text, fileInfo, answers }) => [text, fileInfo, answers])).toEqual([
      ['hello', undefined, to.more?.msg],
      [' ', 'FILE1', to.more?.msg],
      [' ', 'FILE2', to.more?.msg],
    ])
    expect([...fake.uploads.values()].map(({ name, type, bytes }) => [name, type, hash('md5', bytes)])).toEqual([
      ['cat.png', 1, hash('md5', 'bytes')],
      ['log.txt', 4, hash('md5', large)],
    ])
  })

  test('whose upload fails leave the message unsent', async () => {
    fake.fail({ fault: 'status', status: 500 }, { matches: ({ method }) => method === 'PUT' })
    await expect(send({ to: 'user:ADA' }, { attachments: [file('a.txt')] })).rejects.toMatchObject({ code: 'unavailable' })
    expect(fake.sent).toEqual([])
  })

  test('that fail after the text leave the outcome open', async () => {
    const to = addressOf({ text: 'hi' })
    let posts = 0
    fake.fail({ fault: 'status', status: 400, body: { code: 304_080 } }, { matches: (request) => isMessage(request) && ++posts === 2 })
    await expect(send(to, { attachments: [file('a.txt')] })).rejects.toMatchObject({ code: 'upstream' })
  })

  test('are put only to addresses of QQ', async () => {
    const body = { upload_id: 'u', block_size: '5', parts: [{ index: 1, presigned_url: 'https://evil.example/x', block_size: '5' }] }
    fake.fail({ fault: 'status', status: 200, body }, { matches: ({ path }) => path.endsWith('/upload_prepare') })
    await expect(send({ to: 'user:ADA' }, { attachments: [file('a.txt')] })).rejects.toMatchObject({ code: 'upstream' })
  })

  test('of people are downloaded from QQ only, up to a size', async () => {
    fake.files.set('cat', Buffer.from('meow'))
    const attachment = (url: string): Attachment => ({ kind: 'image', name: 'cat.png', source: { url } })
    const media = await channel.fetchMedia?.(attachment(`${fake.url}/download?name=cat`), { bytesMax: 4, signal })
    expect([Buffer.from(media?.bytes ?? []).toString(), media?.mime]).toEqual(['meow', 'image/png'])
    await expect(channel.fetchMedia?.(attachment(`${fake.url}/download?name=cat`), { bytesMax: 3, signal })).rejects.toMatchObject({
      code: 'too_large',
    })
    for (const url of ['https://evil.example/', 'http://multimedia.nt.qq.com.cn/', 'https://10.0.0.1/', 'https://qq.com.evil.example/', ''])
      await expect(channel.fetchMedia?.(attachment(url), { bytesMax: 4, signal })).rejects.toMatchObject({ code: 'invalid_request' })
  })
})

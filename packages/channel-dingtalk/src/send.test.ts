/** Replies, messages of the robot and files against the fake. */
import type { Address, Attachment, Channel, Outbound } from '@sluice/sdk'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { dingtalkSection } from './config.ts'
import feature from './index.ts'
import type { DingtalkFake } from './testing/fake.ts'
import { connect } from './testing/section.ts'

const { signal } = new AbortController()
let fake: DingtalkFake
let clock: TestClock
let channel: Channel

const build = (more: object = {}) =>
  feature.build(testHost({ fetch, clock }), v.parse(dingtalkSection.schema, { ...section, ...more })).channels?.[0] as Channel
let section: object

beforeEach(async () => {
  clock = testClock(Date.UTC(2026, 0, 1))
  const made = await connect({ nowMs: clock.nowMs })
  ;[fake, section] = [made.fake, made.section]
  channel = build()
})
afterEach(() => fake.close())

/** Receives one message. Returns its address. */
async function addressOf(said: Parameters<DingtalkFake['say']>[0]): Promise<Address> {
  const stop = new AbortController()
  const arrived = new Map<string, Address>()
  const report = {
    connected: () => undefined,
    event: () => undefined,
    gap: () => undefined,
    problem: () => undefined,
    replace: async () => undefined,
  }
  const context = { lease: null, signal: stop.signal, report, catchUp: async () => undefined, retrySoon: () => undefined }
  const listening = channel.listen?.(async ({ id, to }) => void arrived.set(id, to), context)
  await expect.poll(() => fake.stream.open).toBe(1)
  const id = fake.say(said)
  await expect.poll(() => arrived.has(id)).toBe(true)
  stop.abort()
  await listening
  return arrived.get(id) as Address
}
const send = (to: Address, message: Partial<Outbound> = {}) => channel.send(to, { text: 'hello', clientId: 'c-1', ...message }, signal)
const file = (name: string, kind: Attachment['kind'] = 'file'): Attachment => ({ kind, name, source: { bytes: Buffer.from('bytes') } })

describe('a reply', () => {
  test('uses the session of its message, and needs no token', async () => {
    const to = await addressOf({ text: 'hi' })
    expect(await send(to)).toEqual({ id: 'reply-c-1' })
    expect(fake.sent).toEqual([{ via: 'session', to: 'staff01', title: 'hello', text: 'hello', mentions: [] }])
    expect(fake.granted).toBe(0)
  })

  test('in a group mentions the sender in its first part', async () => {
    const to = await addressOf({ text: 'hi', group: 'cidOps==' })
    await send(to)
    const { replyTo: _, ...rest } = to
    await send(rest, { text: 'second part, @all and @staff02' })
    expect(fake.sent).toMatchObject([
      { to: 'cidOps==', text: '@staff01  \nhello', mentions: ['staff01'] },
      { to: 'cidOps==', text: 'second part, @all and @staff02', mentions: [] },
    ])
    channel = build({ mention_sender: false })
    await send(to)
    expect(fake.sent[2]).toMatchObject({ text: 'hello', mentions: [] })
  })

  test('goes to the conversation of its message, also when the sender wrote elsewhere since', async () => {
    const inGroup = await addressOf({ text: 'hi', group: 'cidOps==' })
    const direct = await addressOf({ text: 'hi' })
    await send(inGroup)
    await send(direct)
    expect(fake.sent.map(({ to }) => to)).toEqual(['cidOps==', 'staff01'])
  })

  test('after the end of its session is a message of the robot', async () => {
    const to = await addressOf({ text: 'hi' })
    const inGroup = await addressOf({ text: 'hi', group: 'cidOps==' })
    await clock.advance(90 * 60_000)
    expect(await send(to)).toMatchObject({ id: expect.stringMatching(/^[0-9a-f-]{36}$/) })
    await send(inGroup)
    expect(fake.sent).toMatchObject([
      { via: 'person', to: 'staff01', title: 'hello', text: 'hello' },
      { via: 'group', to: 'cidOps==', text: 'hello' },
    ])
    expect(fake.requests.filter(({ path }) => path === '/robot/sendBySession')).toEqual([])
    expect(fake.granted).toBe(1)
  })

  test('over a session that DingTalk ended early is a message of the robot', async () => {
    const to = await addressOf({ text: 'hi' })
    fake.endSessions()
    await send(to)
    expect(fake.sent).toMatchObject([{ via: 'person', to: 'staff01' }])
  })

  test('keeps its session over a restart, because it is a part of the address', async () => {
    const to = JSON.parse(JSON.stringify(await addressOf({ text: 'hi' }))) as Address
    channel = build()
    await send(to)
    expect(fake.sent).toMatchObject([{ via: 'session' }])
  })

  test('beyond twenty in a minute waits', async () => {
    const to = await addressOf({ text: 'hi', group: 'cidOps==' })
    for (let sent = 0; sent < 20; sent++) await send(to)
    await expect(send(to)).rejects.toMatchObject({ code: 'rate_limited', retryAfterSecs: 60 })
  })

  test('of the longest text fits, whatever its characters', async () => {
    const to = await addressOf({ text: 'hi', group: 'cidOps==' })
    for (const character of ['字', '\n', 'x\n', '"', '😀', '\u0001']) {
      await send(to, { text: `a${character.repeat(Math.floor((channel.limits.text - 2) / character.length))}z` })
    }
    expect(fake.sent).toHaveLength(6)
  })

  test('never shows its session in an error', async () => {
    const to = await addressOf({ text: 'hi' })
    const session = to.more?.session ?? 'none'
    for (const fault of [{ fault: 'status', status: 400, body: { errmsg: session } }, { fault: 'reset' }, { fault: 'garbage' }] as const) {
      fake.fail(fault)
      expect(String(await send(to).catch((error: unknown) => error))).not.toContain(session)
    }
  })
})

describe('a message of the robot', () => {
  test('shares one token with others, and replaces one that DingTalk rejects', async () => {
    await Promise.all([send({ to: 'ada' }), send({ to: 'bob' }), send({ to: 'group:cidOps==' })])
    expect(fake.granted).toBe(1)
    fake.endTokens()
    await Promise.all([send({ to: 'ada' }), send({ to: 'bob' })])
    expect(fake.granted).toBe(2)
    expect(fake.sent).toHaveLength(5)
  })

  test('with a rejected token in the other documented form is sent with a new one', async () => {
    fake.fail(
      { fault: 'status', status: 401, body: { code: 'InvalidAuthentication', message: 'no' } },
      { matches: ({ path }) => path.startsWith('/v1.0/robot') },
    )
    await send({ to: 'ada' })
    expect(fake.granted).toBe(2)
  })

  test('to an unknown person, or one who gets too many, is refused', async () => {
    fake.refused.unknown.add('eve')
    fake.refused.limited.add('ada')
    await expect(send({ to: 'eve' })).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(send({ to: 'ada' })).rejects.toMatchObject({ code: 'rate_limited' })
  })

  test.each([
    [403, 'Forbidden.AccessDenied.QpsLimitForApi', 'rate_limited'],
    [403, 'Forbidden.AccessDenied.AccessTokenPermissionDenied', 'forbidden'],
    [400, 'miss.robot', 'invalid_request'],
    [401, 'InvalidAuthentication', 'unavailable'],
  ])('%i %s is %s', async (status, code, expected) => {
    fake.fail(
      { fault: 'status', status, body: { code, message: 'no' } },
      { times: 2, matches: ({ path }) => path.startsWith('/v1.0/robot') },
    )
    await expect(send({ to: 'ada' })).rejects.toMatchObject({ code: expected, message: expect.stringContaining(code) })
  })

  test('without a token is not sent, whatever the reason', async () => {
    fake.changeSecret()
    await expect(send({ to: 'ada' })).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('invalidClientIdOrSecret'),
    })
    fake.fail({ fault: 'reset' })
    await expect(send({ to: 'ada' })).rejects.toMatchObject({ code: 'unavailable' })
  })
})

describe('files', () => {
  test('are uploaded, and follow the text as messages of the robot', async () => {
    const to = await addressOf({ text: 'hi' })
    await send(to, { attachments: [file('cat.png', 'image'), file('report.pdf')] })
    expect(fake.sent).toMatchObject([
      { via: 'session' },
      { via: 'person', mediaId: '@lADP1' },
      { via: 'person', mediaId: '@lADP2', fileName: 'report.pdf' },
    ])
    expect([...fake.uploads.values()].map(({ name, type }) => [name, type])).toEqual([
      ['cat.png', 'image'],
      ['report.pdf', 'file'],
    ])
  })

  test('of a type that DingTalk does not take are refused before anything is sent', async () => {
    await expect(send({ to: 'ada' }, { attachments: [file('notes.txt')] })).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('xlsx, pdf'),
    })
    expect(fake.requests).toEqual([])
  })

  test('that fail after the text leave the outcome open, so that the text is not repeated', async () => {
    const to = await addressOf({ text: 'hi' })
    fake.fail(
      { fault: 'status', status: 400, body: { code: 'miss.robot', message: 'no' } },
      { matches: ({ path }) => path.endsWith('batchSend') },
    )
    await expect(send(to, { attachments: [file('cat.png', 'image')] })).rejects.toMatchObject({ code: 'upstream' })
  })

  test('of people are downloaded by their code, up to a size', async () => {
    fake.files.set('code-1', Buffer.from('meow'))
    const attachment = { kind: 'image', name: 'picture', source: { id: 'code-1' } } as const
    const media = await channel.fetchMedia?.(attachment, { bytesMax: 4, signal })
    expect([Buffer.from(media?.bytes ?? []).toString(), media?.mime]).toEqual(['meow', 'image/png'])
    await expect(channel.fetchMedia?.(attachment, { bytesMax: 3, signal })).rejects.toMatchObject({ code: 'too_large' })
    await expect(channel.fetchMedia?.({ ...attachment, source: { id: 'code-2' } }, { bytesMax: 4, signal })).rejects.toMatchObject({
      code: 'invalid_request',
    })
  })

  test.each([
    'http://127.0.0.1:1/x',
    'https://10.0.0.1/x',
    'https://evil.example/x',
    'https://a@oss.aliyuncs.com/x',
    'https://aliyuncs.com.evil.example/',
    'file:///etc/passwd',
    '',
  ])('at %j are not downloaded', async (downloadUrl) => {
    fake.fail({ fault: 'status', status: 200, body: { downloadUrl } }, { matches: ({ path }) => path.endsWith('/download') })
    const attachment = { kind: 'image', name: 'picture', source: { id: 'code-1' } } as const
    await expect(channel.fetchMedia?.(attachment, { bytesMax: 4, signal })).rejects.toMatchObject({ code: 'invalid_request' })
  })
})

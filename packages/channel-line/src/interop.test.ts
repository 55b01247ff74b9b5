/** Runs the channel against the fake over real sockets. */
import { AppError, type Attachment, type Channel, type Outbound } from '@sluice/sdk'
import { type TestHost, type TestHostOverrides, testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { lineSection } from './config.ts'
import feature from './index.ts'
import { TEXT_MAX } from './send.ts'
import { LINE_GROUP, LINE_TOKEN, LINE_USER, type LineFake, startLineFake } from './testing/fake.ts'
import { sectionOf } from './testing/section.ts'

const { signal } = new AbortController()
let fake: LineFake
let host: TestHost

beforeEach(async () => {
  host = testHost({ fetch })
  fake = await startLineFake({ nowMs: () => host.clock.nowMs() })
})
afterEach(() => fake.close())

function channelWith(changes: object = {}, overrides: TestHostOverrides = {}): Channel {
  const on = Object.keys(overrides).length === 0 ? host : testHost({ fetch, ...overrides })
  const [built] = feature.build(on, v.parse(lineSection.schema, { ...sectionOf(fake), ...changes })).channels ?? []
  if (!built) throw new Error('The feature built no channel')
  return built
}

const message = (text: string, more: Partial<Outbound> = {}): Outbound => ({ text, clientId: `client-${text}`, ...more })
const failureOf = (step: Promise<unknown> | undefined) => Promise.resolve(step).catch((error: unknown) => error)
const isPush = ({ path }: { readonly path: string }) => path.endsWith('/push')
const isReply = ({ path }: { readonly path: string }) => path.endsWith('/reply')

describe('send', () => {
  test('the first answer uses the reply token, and a message without one is pushed', async () => {
    const channel = channelWith()
    const replyTo = fake.replyToken('a', LINE_USER)
    const first = await channel.send({ to: LINE_USER, replyTo }, message('first'), signal)
    const second = await channel.send({ to: LINE_USER }, message('second'), signal)
    expect(fake.sent).toMatchObject([
      { id: first.id, to: LINE_USER, text: 'first', by: 'reply' },
      { id: second.id, to: LINE_USER, text: 'second', by: 'push' },
    ])
  })

  test.each(['reply', 'push'])('a %s without the quote follows the refusal of its quote token', async (by) => {
    // The properties of a refused request: https://developers.line.biz/en/reference/messaging-api/#error-responses
    const details = [{ message: 'The quote token is invalid', property: 'messages[0].quoteToken' }]
    fake.fail({ fault: 'status', status: 400, body: { message: 'The request body has 1 error(s)', details } })
    const replyTo = by === 'reply' ? { replyTo: fake.replyToken('a', LINE_GROUP) } : {}
    await channelWith().send({ to: LINE_GROUP, ...replyTo, more: { quote: 'gone' } }, message('answer'), signal)
    expect(fake.sent).toMatchObject([{ text: 'answer', by }])
    expect(fake.sent[0]).not.toHaveProperty('quoteToken')
  })

  test('a reply token that was used, or is too old, is replaced by a push', async () => {
    const channel = channelWith()
    const replyTo = fake.replyToken('a', LINE_USER)
    await channel.send({ to: LINE_USER, replyTo }, message('first'), signal)
    await channel.send({ to: LINE_USER, replyTo }, message('again'), signal)
    const late = fake.replyToken('b', LINE_USER)
    await host.advance(61_000)
    await channel.send({ to: LINE_USER, replyTo: late }, message('late'), signal)
    expect(fake.sent.map(({ text, by }) => [text, by])).toEqual([
      ['first', 'reply'],
      ['again', 'push'],
      ['late', 'push'],
    ])
  })

  test('a reply in a group quotes the message', async () => {
    const to = { to: LINE_GROUP, replyTo: fake.replyToken('a', LINE_GROUP), more: { quote: 'q3Plxr4AgKd' } }
    await channelWith().send(to, message('yes'), signal)
    expect(fake.sent).toMatchObject([{ to: LINE_GROUP, quoteToken: 'q3Plxr4AgKd' }])
  })

  test('a long text is sent whole in one request, quoted by its first and with buttons under its last message', async () => {
    const paragraphs = Array.from({ length: 50 }, (_, n) => `${n} ${'word '.repeat(70)}`.trim())
    const replyTo = fake.replyToken('a', LINE_GROUP)
    const buttons = [{ label: 'Approve', value: 'approve:1', tone: 'good' as const }]
    const to = { to: LINE_GROUP, replyTo, more: { quote: 'q' } }
    const { id } = await channelWith().send(to, message(paragraphs.join('\n'), { buttons }), signal)
    expect(fake.requests).toHaveLength(1)
    expect(
      fake.sent
        .map(({ text }) => text)
        .join('\n')
        .split('\n'),
    ).toEqual(paragraphs)
    expect(fake.sent.map(({ quoteToken }) => quoteToken !== undefined)).toEqual([true, false, false, false])
    expect(fake.sent.map((sent) => sent.buttons.length)).toEqual([0, 0, 0, 1])
    expect(fake.sent.at(-1)?.id).toBe(id)
  })

  test.each(['😀', 'x', 'x😀\n', '```\nx\n```\n\n'])(
    'the longest text of %j is five messages at most, and nothing of it is lost',
    async (piece) => {
      const text = piece.repeat(TEXT_MAX).slice(0, TEXT_MAX).toWellFormed().replaceAll('\ufffd', 'x')
      await channelWith().send({ to: LINE_USER }, message(text), signal)
      expect(fake.sent.length).toBeLessThanOrEqual(5)
      const sent = fake.sent.map((each) => each.text).join('')
      for (const character of new Set(text.replaceAll(/\s/g, '')))
        expect(sent.split(character).length).toBeGreaterThanOrEqual(text.split(character).length)
      expect(sent.isWellFormed()).toBe(true)
    },
  )

  test('buttons are quick replies, with labels of at most 20 characters', async () => {
    const buttons = [
      { label: 'Approve this very dangerous thing', value: 'approve:1', tone: 'good' as const },
      { label: 'Reject', value: 'reject:1', tone: 'bad' as const },
    ]
    await channelWith().send({ to: LINE_USER }, message('May it?', { buttons }), signal)
    expect(fake.sent[0]?.buttons).toEqual(['approve:1', 'reject:1'])
  })

  test.each(['lost', 'cut', 'garbage', 'reset'] as const)(
    'a push whose answer is %s may be repeated, and is not doubled',
    async (fault) => {
      fake.fail({ fault }, { matches: isPush })
      const channel = channelWith()
      expect(await failureOf(channel.send({ to: LINE_USER }, message('once'), signal))).toMatchObject({ code: 'unavailable' })
      const { id } = await channel.send({ to: LINE_USER }, message('once'), signal)
      expect(fake.sent.map((sent) => sent.id)).toEqual([id])
    },
  )

  test('a reply whose answer is lost is ambiguous, because LINE drops no repeats of replies', async () => {
    fake.fail({ fault: 'lost' }, { matches: isReply })
    const sending = channelWith().send({ to: LINE_USER, replyTo: fake.replyToken('a', LINE_USER) }, message('once'), signal)
    expect(await failureOf(sending)).toMatchObject({ code: 'upstream' })
    expect(channelWith().limits.dedupesClientIds).toBeUndefined()
  })

  test('the monthly limit is final and shown in the health, and the rate limit is not', async () => {
    const channel = channelWith()
    fake.quota = 0
    expect(await failureOf(channel.send({ to: LINE_USER }, message('a'), signal))).toMatchObject({
      code: 'forbidden',
      message: expect.stringContaining('You have reached your monthly limit'),
    })
    expect(channel.health?.()).toMatchObject({ state: 'down', detail: expect.stringContaining('monthly limit') })
    const rate = { message: 'The API rate limit has been exceeded. Try again later.' }
    fake.fail({ fault: 'status', status: 429, body: rate }, { matches: isPush })
    expect(await failureOf(channel.send({ to: LINE_USER }, message('b'), signal))).toMatchObject({ code: 'rate_limited' })
    await channel.send({ to: LINE_USER, replyTo: fake.replyToken('a', LINE_USER) }, message('free'), signal)
    expect(channel.health?.()).toMatchObject({ state: 'ok' })
  })

  test('a refusal names the property, and a revoked token waits for the operator', async () => {
    const channel = channelWith()
    expect(await failureOf(channel.send({ to: 'nobody' }, message('a'), signal))).toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining("'to'"),
    })
    fake.revoke()
    const failure = await failureOf(channel.send({ to: LINE_USER }, message('a'), signal))
    expect(failure).toMatchObject({ code: 'unavailable' })
    expect(String(failure)).not.toContain(LINE_TOKEN)
  })
})

test('the loading animation is shown to a person, and not in a group', async () => {
  const channel = channelWith()
  await channel.typing?.({ to: LINE_USER }, signal)
  await channel.typing?.({ to: LINE_GROUP }, signal)
  expect(fake.loading).toEqual([{ chatId: LINE_USER, loadingSeconds: 10 }])
})

describe('fetchMedia', () => {
  const bytes = new TextEncoder().encode('content')
  const attachment = (id: string): Attachment => ({ kind: 'audio', name: 'audio', source: { id } })
  const patient = { clock: { ...testHost().clock, sleep: async () => undefined } }

  test('a file is downloaded by the id of its message', async () => {
    fake.addFile('1', { bytes, mime: 'image/jpeg' })
    const media = await channelWith().fetchMedia?.(attachment('1'), { bytesMax: 100, signal })
    expect(media?.mime).toBe('image/jpeg')
    expect(new TextDecoder().decode(media?.bytes)).toBe('content')
    expect(await failureOf(channelWith().fetchMedia?.(attachment('1'), { bytesMax: 3, signal }))).toMatchObject({ code: 'too_large' })
    expect(await failureOf(channelWith().fetchMedia?.(attachment('2'), { bytesMax: 100, signal }))).toMatchObject({
      code: 'invalid_request',
    })
  })

  test('a file that LINE still prepares is waited for', async () => {
    fake.addFile('1', { bytes, mime: 'audio/x-m4a', preparingFor: 3 })
    const media = await channelWith({}, patient).fetchMedia?.(attachment('1'), { bytesMax: 100, signal })
    expect(new TextDecoder().decode(media?.bytes)).toBe('content')
  })

  test('a file that LINE prepares for too long may be fetched later, and one that it cannot prepare is given up', async () => {
    fake.addFile('1', { bytes, mime: 'video/mp4', preparingFor: 1000 })
    const channel = channelWith({}, patient)
    expect(await failureOf(channel.fetchMedia?.(attachment('1'), { bytesMax: 100, signal }))).toMatchObject({ code: 'unavailable' })
    fake.addFile('2', { bytes, mime: 'video/mp4', preparingFor: 1000, fails: true })
    expect(await failureOf(channel.fetchMedia?.(attachment('2'), { bytesMax: 100, signal }))).toMatchObject({ code: 'invalid_request' })
  })

  test('a file on another server is fetched without the token, from public addresses only', async () => {
    const asked: string[] = []
    const publicFetch: TestHost['publicFetch'] = async (url) => {
      asked.push(url)
      throw new AppError('forbidden', 'the address is not public')
    }
    const external: Attachment = { kind: 'video', name: 'video', source: { url: 'http://10.0.0.1/a.mp4' } }
    const fetched = channelWith({}, { publicFetch }).fetchMedia?.(external, { bytesMax: 100, signal })
    expect(await failureOf(fetched)).toMatchObject({ code: 'forbidden' })
    expect(asked).toEqual(['http://10.0.0.1/a.mp4'])
    expect(fake.requests).toEqual([])
  })

  test('an id other than a message id makes no request', async () => {
    expect(await failureOf(channelWith().fetchMedia?.(attachment('../1'), { bytesMax: 100, signal }))).toMatchObject({
      code: 'invalid_request',
    })
    expect(fake.requests).toEqual([])
  })
})

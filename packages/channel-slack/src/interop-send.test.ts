/** Messages, edits and files over real sockets, with the faults of the wire and the words of Slack's refusals. */
import { AppError, type Channel, type Outbound } from '@sluice/sdk'
import { abortedOnArrival, type FakeProvider, type ProviderFault, startFakeProvider } from '@sluice/testkit/fake-provider'
import { type SlackFake, startSlackFake } from '@sluice/testkit/fakes/slack'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createBot } from './testing/bot.ts'

let fake: SlackFake
let bot: ReturnType<typeof createBot>
beforeEach(async () => {
  fake = await startSlackFake({ foreign: ['CFOREIGN'], archived: ['COLD'] })
  bot = createBot(fake)
})
afterEach(() => fake.close())

const never = () => new AbortController().signal
const hello: Outbound = { text: 'hello', clientId: 'client-1' }
const send = (message: Partial<Outbound> = {}, to: { to: string; thread?: string } = { to: 'C1' }, signal = never()): Promise<unknown> =>
  bot.channel.send(to, { ...hello, ...message }, signal).catch((error: unknown) => error)
const update = (id: string, message: Partial<Outbound>): Promise<unknown> =>
  (bot.channel as Required<Channel>).update({ to: 'C1' }, { id }, { ...hello, ...message }, never())
const texts = (channel = 'C1') => fake.messages(channel).map(({ text }) => text)
const idOf = (sent: unknown): string => (sent as { id: string }).id

const buttons = [
  { label: 'Approve', value: 'approve:1', tone: 'good' },
  { label: 'Reject', value: 'reject:1', tone: 'bad' },
] as const

describe('a message', () => {
  test('goes into its thread, and its id is that of the thread that is opened by answering it', async () => {
    const root = fake.say({ text: 'a question' })
    const id = idOf(await send({ text: 'an answer' }, { to: 'C1', thread: root }))
    expect(fake.messages()).toMatchObject([{ ts: root }, { ts: id, thread_ts: root, text: 'an answer' }])
    const prompt = idOf(await send({ text: 'Deploy?' }))
    fake.say({ text: 'approve', thread: prompt })
    expect(fake.messages().at(-1)).toMatchObject({ thread_ts: prompt })
  })

  test('of a model mentions nobody', async () => {
    const text = 'Hey <!channel> <!here> <!everyone> <!subteam^S1> <@U1> & @channel'
    await send({ text })
    await send({ text, buttons })
    expect(texts()[0]).toBe('Hey &lt;!channel&gt; &lt;!here&gt; &lt;!everyone&gt; &lt;!subteam^S1&gt; &lt;@U1&gt; &amp; @channel')
    for (const message of fake.messages()) expect(JSON.stringify(message)).not.toMatch(/<[!@#]/)
    expect(fake.messages()[1]?.blocks?.[0]).toMatchObject({ text: { type: 'mrkdwn', verbatim: true } })
    for (const { body } of fake.requests) expect(Object.fromEntries(new URLSearchParams(body.toString()))).toMatchObject({ parse: 'none' })
  })

  test.each(['x', '&', '😀', '<'])('of the longest text, all of it %s, goes out whole, and its edit too', async (character) => {
    const text = character.repeat(bot.channel.limits.text / character.length)
    const id = idOf(await send({ text }))
    const whole = () => {
      const [message] = fake.messages()
      const blocks = (message?.blocks ?? []) as { text: { text: string } }[]
      const shown = blocks.length > 0 ? blocks.map((block) => block.text.text).join('') : (message?.text ?? '')
      return shown.replaceAll('&lt;', '<').replaceAll('&amp;', '&')
    }
    expect(whole()).toBe(text)
    await update(id, { text: `${text.slice(character.length)}${character}` })
    expect(whole()).toBe(text)
  })

  test('with buttons shows them, and an edit without takes them away', async () => {
    const id = idOf(await send({ text: 'Deploy?', buttons }))
    expect(fake.messages()[0]?.blocks).toMatchObject([
      { type: 'section', text: { text: 'Deploy?' } },
      {
        type: 'actions',
        elements: [
          { value: 'approve:1', style: 'primary', text: { text: 'Approve' } },
          { value: 'reject:1', style: 'danger', text: { text: 'Reject' } },
        ],
      },
    ])
    await update(id, { text: 'Approved by UADA' })
    expect(fake.messages()[0]).toMatchObject({ text: 'Approved by UADA' })
    expect(fake.messages()[0]?.blocks).toBeUndefined()
  })

  test('is edited as often as one likes, with the same text too', async () => {
    const id = idOf(await send())
    for (const text of ['one', 'one', 'two']) await update(id, { text })
    expect(texts()).toEqual(['two'])
    await expect(update('1767225000.000000', {})).rejects.toMatchObject({ code: 'invalid_request' })
  })
})

describe('what Slack refuses, always with status 200', () => {
  test.each([
    ['a conversation there is none of', { to: 'CNONE' }, {}, 'channel_not_found'],
    ['a conversation the bot is no member of', { to: 'CFOREIGN' }, {}, 'not_in_channel'],
    ['an archived conversation', { to: 'COLD' }, {}, 'is_archived'],
    ['a thread there is none of', { to: 'C1', thread: '1767225000.000000' }, {}, 'thread_not_found'],
    ['no text', { to: 'C1' }, { text: '' }, 'no_text'],
  ])('%s is never sent', async (_name, to, message, word) => {
    expect(await send(message, to)).toMatchObject({ code: 'invalid_request', message: `slack answered ${word} to chat.postMessage` })
  })

  test('an expired token is never sent with, and said', async () => {
    fake.change({ bot_token: 'another' })
    expect(await send()).toMatchObject({ code: 'forbidden', message: expect.stringContaining('invalid_auth') })
  })

  test.each([
    ['ratelimited', 'rate_limited', 12],
    ['team_added_to_org', 'unavailable', undefined],
    ['internal_error', 'upstream', undefined],
    ['fatal_error', 'upstream', undefined],
    ['request_timeout', 'upstream', undefined],
    ['service_unavailable', 'upstream', undefined],
    ['token_revoked', 'forbidden', undefined],
    ['missing_scope', 'invalid_request', undefined],
    ['msg_too_long', 'invalid_request', undefined],
    ['a_word_of_tomorrow', 'invalid_request', undefined],
    ['<script>no word</script>', 'upstream', undefined],
  ])('%s is %s', async (word, code, retryAfterSecs) => {
    const headers: Record<string, string> = retryAfterSecs === undefined ? {} : { 'retry-after': String(retryAfterSecs) }
    fake.fail({ fault: 'status', status: 200, headers, body: { ok: false, error: word } })
    const error = await send()
    expect(error).toMatchObject({ code, retryAfterSecs })
    expect((error as AppError).message).not.toContain('<')
    expect(fake.requests).toHaveLength(1)
  })
})

describe('faults of the wire: not sent, refused, or nobody knows', () => {
  const status = (code: number, headers: Record<string, string> = {}, error = 'whatever'): ProviderFault => ({
    fault: 'status',
    status: code,
    headers,
    body: { ok: false, error },
  })

  test.each<[name: string, fault: ProviderFault, code: string, retryAfterSecs: number | undefined, arrived: number]>([
    ['429', status(429), 'rate_limited', undefined, 0],
    ['429 with a time to come back', status(429, { 'retry-after': '30' }), 'rate_limited', 30, 0],
    ['503 with a time to come back', status(503, { 'retry-after': '120' }), 'unavailable', 120, 0],
    ['500', status(500), 'unavailable', undefined, 0],
    ['500 that may have been done', status(500, {}, 'internal_error'), 'upstream', undefined, 0],
    ['502', status(502), 'upstream', undefined, 0],
    ['503', status(503), 'unavailable', undefined, 0],
    ['503 that may have been done', status(503, {}, 'fatal_error'), 'upstream', undefined, 0],
    ['403', status(403), 'forbidden', undefined, 0],
    ['404', status(404), 'invalid_request', undefined, 0],
    ['a reset before', { fault: 'reset' }, 'upstream', undefined, 0],
    ['a reset after', { fault: 'lost' }, 'upstream', undefined, 1],
    ['JSON cut in the middle', { fault: 'cut' }, 'upstream', undefined, 1],
    ['garbage', { fault: 'garbage' }, 'upstream', undefined, 1],
    ['an answer that says nothing', { fault: 'status', status: 200, body: {} }, 'upstream', undefined, 0],
    ['an answer without an id', { fault: 'status', status: 200, body: { ok: true } }, 'upstream', undefined, 0],
    ['an answer of more than 1 MiB', { fault: 'status', status: 200, body: 'x'.repeat(1_048_577) }, 'upstream', undefined, 0],
  ])('%s', async (_name, fault, code, retryAfterSecs, arrived) => {
    fake.fail(fault)
    const error = await send()
    expect(error).toBeInstanceOf(AppError)
    expect(error).toMatchObject({ code, retryAfterSecs })
    expect([fake.messages().length, fake.requests.length]).toEqual([arrived, 1])
    expect(JSON.stringify([bot.host.logs, String(error), (error as AppError).stack])).not.toContain('token-01')
  })

  test('a burst of limits ends with the message there once', async () => {
    fake.fail(status(429, { 'retry-after': '1' }), { times: 3 })
    for (let tries = 0; tries < 4; tries++) await send()
    expect(texts()).toEqual(['hello'])
  })

  test('an answer that takes its time is waited for', async () => {
    fake.fail({ fault: 'slow', ms: 1 })
    expect(idOf(await send())).toBe(fake.messages()[0]?.ts)
  })

  test('an answer that never comes ends with the abort, and may have been sent', async () => {
    expect(await send({}, { to: 'C1' }, abortedOnArrival(fake))).toMatchObject({ code: 'aborted' })
  })

  test('a server that is not there was not sent to', async () => {
    await fake.close()
    expect(await send()).toMatchObject({ code: 'unavailable' })
  })
})

describe('elsewhere', () => {
  let elsewhere: FakeProvider
  beforeEach(async () => {
    elsewhere = await startFakeProvider(() => ({ status: 200, body: { ok: true, ts: '1767225600.000100' } }))
  })
  afterEach(() => elsewhere.close())

  test('is never asked where a redirect leads there', async () => {
    for (const code of [302, 307]) {
      fake.fail({ fault: 'status', status: code, headers: { location: elsewhere.url }, body: {} })
      expect(await send()).toMatchObject({ code: 'invalid_request' })
    }
    expect(elsewhere.requests).toEqual([])
  })

  test('is never uploaded to', async () => {
    const body = { ok: true, file_id: 'F1', upload_url: elsewhere.url }
    fake.fail({ fault: 'status', status: 200, body }, { matches: ({ path }) => path.endsWith('getUploadURLExternal') })
    expect(await send({ attachments: [report] })).toMatchObject({ code: 'unavailable' })
    expect(elsewhere.requests).toEqual([])
  })
})

const report = { kind: 'file', name: 'report.txt', source: { bytes: new TextEncoder().encode('all is well') } } as const

describe('files', () => {
  test('go out as one message with its text, into the thread', async () => {
    const root = fake.say({ text: 'a report, please' })
    const second = { ...report, name: 'more.txt' }
    const id = idOf(await send({ text: 'here <!here>', attachments: [report, second] }, { to: 'C1', thread: root }))
    expect(fake.messages()[1]).toMatchObject({
      text: 'here &lt;!here&gt;',
      thread_ts: root,
      files: [{ id, title: 'report.txt' }, { title: 'more.txt' }],
    })
    expect(Buffer.from(fake.files.bytes(id) ?? []).toString()).toBe('all is well')
    expect(fake.requests.find(({ path }) => path.startsWith('/upload/'))?.headers.get('authorization')).toBeNull()
    await expect(update(id, {})).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('and buttons are two messages, of which the second is the one that is pressed', async () => {
    const id = idOf(await send({ text: 'Deploy?', attachments: [report], buttons }))
    expect(fake.messages()).toMatchObject([
      { text: '', files: [{}] },
      { ts: id, text: 'Deploy?' },
    ])
  })

  test.each<[step: string, fault: ProviderFault]>([
    ['/files.getUploadURLExternal', { fault: 'reset' }],
    ['/files.getUploadURLExternal', { fault: 'garbage' }],
    ['/upload/', { fault: 'lost' }],
    ['/upload/', { fault: 'status', status: 503 }],
  ])('that fail at %s by %j were not sent, and go the next time', async (step, fault) => {
    fake.fail(fault, { matches: ({ path }) => path.includes(step) })
    expect(await send({ attachments: [report] })).toMatchObject({ code: 'unavailable' })
    expect(fake.messages()).toEqual([])
    expect(idOf(await send({ attachments: [report] }))).toMatch(/^F\d+$/)
  })

  test('that were shared without an answer may have been sent', async () => {
    fake.fail({ fault: 'lost' }, { matches: ({ path }) => path.endsWith('completeUploadExternal') })
    expect(await send({ attachments: [report] })).toMatchObject({ code: 'upstream' })
    expect(fake.messages()).toHaveLength(1)
  })

  test('without content never go', async () => {
    const empty = { ...report, source: { bytes: new Uint8Array() } }
    expect(await send({ attachments: [empty] })).toMatchObject({ code: 'invalid_request' })
  })
})

describe('a status', () => {
  const typing = (thread?: string) => bot.channel.typing?.({ to: 'C1', ...(thread !== undefined && { thread }) }, never())

  test('is shown in threads alone', async () => {
    const thread = fake.say({ text: 'x' })
    await typing()
    await typing(thread)
    expect(fake.statuses).toEqual([{ channel: 'C1', thread, status: 'is thinking…' }])
  })

  test('that is refused is not asked for again', async () => {
    const thread = fake.say({ text: 'x' })
    fake.fail({ fault: 'status', status: 200, body: { ok: false, error: 'missing_scope' } })
    await typing(thread)
    await typing(thread)
    expect(fake.requests).toHaveLength(1)
  })
})

test('the outcome of a send is seen in the health', async () => {
  await send()
  expect(bot.channel.health?.()).toEqual({ state: 'connecting', lastSentAtMs: bot.host.clock.nowMs() })
})

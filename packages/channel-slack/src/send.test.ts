/** Messages, edits and files over real sockets, with network failures and Slack's refusals. */
import { AppError, type Channel, type Outbound } from '@sluice/sdk'
import { abortedOnArrival, type FakeProvider, type ProviderFault, startFakeProvider } from '@sluice/testkit/fake-provider'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type SlackFake, startSlackFake } from './testing/fake.ts'
import { createTestChannel } from './testing/test-channel.ts'

let fake: SlackFake
let bot: ReturnType<typeof createTestChannel>
beforeEach(async () => {
  fake = await startSlackFake({ foreign: ['CFOREIGN'], archived: ['COLD'] })
  bot = createTestChannel(fake)
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
  test('goes into its thread, and its id names the thread of its replies', async () => {
    const root = fake.say({ text: 'a question' })
    const id = idOf(await send({ text: 'an answer' }, { to: 'C1', thread: root }))
    expect(fake.messages()).toMatchObject([{ ts: root }, { ts: id, thread_ts: root, text: 'an answer' }])
    const prompt = idOf(await send({ text: 'Deploy?' }))
    fake.say({ text: 'approve', thread: prompt })
    expect(fake.messages().at(-1)).toMatchObject({ thread_ts: prompt })
  })

  test('and its files go into the conversation when the thread is gone', async () => {
    const gone = { to: 'C1', thread: '1700000000.000100' }
    await send({ text: 'an answer' }, gone)
    await send({ text: 'a file', attachments: [{ kind: 'file', name: 'a.txt', source: { bytes: new TextEncoder().encode('a') } }] }, gone)
    expect(texts()).toEqual(['an answer', 'a file'])
    expect(fake.messages().map(({ thread_ts }) => thread_ts)).toEqual([undefined, undefined])
  })

  test('shows its styles in a block of rich text, in which no character is a mark', async () => {
    const text = 'a *b* link\n\ncode\n\nend'
    const styles = [
      { kind: 'bold', from: 0, to: 1 },
      { kind: 'link', from: 6, to: 10, value: 'https://a.b' },
      { kind: 'pre', from: 12, to: 16 },
    ] as const
    await send({ text, styles })
    await send({ text: '2 * 3', styles: [] })
    const section = (...elements: object[]) => ({ type: 'rich_text_section', elements })
    const words = (text: string, style?: object) => ({ type: 'text', text, ...(style && { style }) })
    expect(fake.messages().map(({ blocks }) => blocks)).toEqual([
      [
        {
          type: 'rich_text',
          elements: [
            section(words('a', { bold: true }), words(' *b* '), { type: 'link', url: 'https://a.b', text: 'link' }),
            { type: 'rich_text_preformatted', elements: [words('code')] },
            section(words('end')),
          ],
        },
      ],
      [{ type: 'rich_text', elements: [section(words('2 * 3'))] }],
    ])
    expect(texts()).toEqual([text, '2 * 3'])
  })

  test('whose blocks Slack refuses is sent as plain text', async () => {
    const two = { label: 'Approve', value: 'v'.repeat(3000), tone: 'good' } as const
    await send({ text: 'May it run?', buttons: [two] })
    expect(fake.messages()).toMatchObject([{ text: 'May it run?' }])
    expect(fake.messages()[0]?.blocks ?? []).toEqual([])
  })

  test('mentions no person or group', async () => {
    const text = 'Hey <!channel> <!here> <!everyone> <!subteam^S1> <@U1> & @channel'
    await send({ text })
    await send({ text, buttons })
    expect(texts()[0]).toBe('Hey &lt;!channel&gt; &lt;!here&gt; &lt;!everyone&gt; &lt;!subteam^S1&gt; &lt;@U1&gt; &amp; @channel')
    for (const message of fake.messages()) expect(JSON.stringify(message)).not.toMatch(/<[!@#]/)
    expect(fake.messages()[1]?.blocks?.[0]).toMatchObject({ text: { type: 'mrkdwn', verbatim: true } })
    for (const { body } of fake.requests) expect(Object.fromEntries(new URLSearchParams(body.toString()))).toMatchObject({ parse: 'none' })
  })

  test.each(['x', '&', '😀', '<'])('of the longest text, made of %s, is sent and edited in full', async (character) => {
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

  test('shows its buttons, and an edit without buttons removes them', async () => {
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

  test('can be edited repeatedly, also with the same text', async () => {
    const id = idOf(await send())
    for (const text of ['one', 'one', 'two']) await update(id, { text })
    expect(texts()).toEqual(['two'])
    await expect(update('1767225000.000000', {})).rejects.toMatchObject({ code: 'invalid_request' })
  })
})

describe('a refusal with status 200', () => {
  test.each([
    ['a missing conversation', { to: 'CNONE' }, {}, 'channel_not_found'],
    ['a conversation that the bot is not a member of', { to: 'CFOREIGN' }, {}, 'not_in_channel'],
    ['an archived conversation', { to: 'COLD' }, {}, 'is_archived'],
    ['an empty text', { to: 'C1' }, { text: '' }, 'no_text'],
  ])('for %s is final', async (_name, to, message, word) => {
    expect(await send(message, to)).toMatchObject({ code: 'invalid_request', message: `slack answered ${word} to chat.postMessage` })
  })

  test('for an invalid token is final and names the word of Slack', async () => {
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
    ['a_word_added_later', 'invalid_request', undefined],
    ['<script>no word</script>', 'upstream', undefined],
  ])('with the word %s is %s', async (word, code, retryAfterSecs) => {
    const headers: Record<string, string> = retryAfterSecs === undefined ? {} : { 'retry-after': String(retryAfterSecs) }
    fake.fail({ fault: 'status', status: 200, headers, body: { ok: false, error: word } })
    const error = await send()
    expect(error).toMatchObject({ code, retryAfterSecs })
    expect((error as AppError).message).not.toContain('<')
    expect(fake.requests).toHaveLength(1)
  })
})

describe('send with a failing platform', () => {
  const status = (code: number, headers: Record<string, string> = {}, error = 'whatever'): ProviderFault => ({
    fault: 'status',
    status: code,
    headers,
    body: { ok: false, error },
  })

  test.each<[name: string, fault: ProviderFault, code: string, retryAfterSecs: number | undefined, arrived: number]>([
    ['429', status(429), 'rate_limited', undefined, 0],
    ['429 with Retry-After', status(429, { 'retry-after': '30' }), 'rate_limited', 30, 0],
    ['503 with Retry-After', status(503, { 'retry-after': '120' }), 'unavailable', 120, 0],
    ['500', status(500), 'unavailable', undefined, 0],
    ['500 with an uncertain word', status(500, {}, 'internal_error'), 'upstream', undefined, 0],
    ['502', status(502), 'upstream', undefined, 0],
    ['503', status(503), 'unavailable', undefined, 0],
    ['503 with an uncertain word', status(503, {}, 'fatal_error'), 'upstream', undefined, 0],
    ['403', status(403), 'forbidden', undefined, 0],
    ['404', status(404), 'invalid_request', undefined, 0],
    ['a reset before the request arrived', { fault: 'reset' }, 'upstream', undefined, 0],
    ['a reset after the request arrived', { fault: 'lost' }, 'upstream', undefined, 1],
    ['truncated JSON', { fault: 'cut' }, 'upstream', undefined, 1],
    ['an answer that is not JSON', { fault: 'garbage' }, 'upstream', undefined, 1],
    ['an empty answer', { fault: 'status', status: 200, body: {} }, 'upstream', undefined, 0],
    ['an answer without an id', { fault: 'status', status: 200, body: { ok: true } }, 'upstream', undefined, 0],
    ['an answer of more than 1 MiB', { fault: 'status', status: 200, body: 'x'.repeat(1_048_577) }, 'upstream', undefined, 0],
  ])('(%s) tells whether the message may have been sent', async (_name, fault, code, retryAfterSecs, arrived) => {
    fake.fail(fault)
    const error = await send()
    expect(error).toBeInstanceOf(AppError)
    expect(error).toMatchObject({ code, retryAfterSecs })
    expect([fake.messages().length, fake.requests.length]).toEqual([arrived, 1])
    expect(JSON.stringify([bot.host.logs, String(error), (error as AppError).stack])).not.toContain('token-01')
  })

  test('can be repeated until the message is posted once', async () => {
    fake.fail(status(429, { 'retry-after': '1' }), { times: 3 })
    for (let tries = 0; tries < 4; tries++) await send()
    expect(texts()).toEqual(['hello'])
  })

  test('waits for a slow answer', async () => {
    fake.fail({ fault: 'slow', ms: 1 })
    expect(idOf(await send())).toBe(fake.messages()[0]?.ts)
  })

  test('is aborted when the answer never arrives', async () => {
    expect(await send({}, { to: 'C1' }, abortedOnArrival(fake))).toMatchObject({ code: 'aborted' })
  })

  test('is unavailable when the server cannot be reached', async () => {
    await fake.close()
    expect(await send()).toMatchObject({ code: 'unavailable' })
  })
})

describe('a host outside of Slack', () => {
  let elsewhere: FakeProvider
  beforeEach(async () => {
    elsewhere = await startFakeProvider(() => ({ status: 200, body: { ok: true, ts: '1767225600.000100' } }))
  })
  afterEach(() => elsewhere.close())

  test('is not contacted after a redirect', async () => {
    for (const code of [302, 307]) {
      fake.fail({ fault: 'status', status: code, headers: { location: elsewhere.url }, body: {} })
      expect(await send()).toMatchObject({ code: 'invalid_request' })
    }
    expect(elsewhere.requests).toEqual([])
  })

  test('receives no upload', async () => {
    const body = { ok: true, file_id: 'F1', upload_url: elsewhere.url }
    fake.fail({ fault: 'status', status: 200, body }, { matches: ({ path }) => path.endsWith('getUploadURLExternal') })
    expect(await send({ attachments: [report] })).toMatchObject({ code: 'unavailable' })
    expect(elsewhere.requests).toEqual([])
  })
})

const report = { kind: 'file', name: 'report.txt', source: { bytes: new TextEncoder().encode('all is well') } } as const

describe('files', () => {
  test('are sent as one message with its text, into the thread', async () => {
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

  test('show the styles of their text, and its characters as they are', async () => {
    const styles = [{ kind: 'bold', from: 0, to: 3 }] as const
    await send({ text: 'All is well', styles, attachments: [report] })
    await send({ text: '2 *3* 4 <!here>', styles: [], attachments: [report] })
    expect(fake.messages()).toMatchObject([
      {
        text: '',
        files: [{}],
        blocks: [{ type: 'rich_text', elements: [{ elements: [{ text: 'All', style: { bold: true } }, { text: ' is well' }] }] }],
      },
      { text: '', files: [{}], blocks: [{ type: 'rich_text', elements: [{ elements: [{ text: '2 *3* 4 <!here>' }] }] }] },
    ])
  })

  test('keep their text when Slack refuses the block', async () => {
    const body = { ok: false, error: 'invalid_blocks' }
    fake.fail({ fault: 'status', status: 200, body }, { matches: ({ path }) => path.endsWith('completeUploadExternal') })
    idOf(await send({ text: '2 *3* 4', styles: [], attachments: [report] }))
    expect(fake.messages()).toMatchObject([{ text: '2 *3* 4', files: [{}] }])
  })

  test('and buttons become two messages, the second with the buttons', async () => {
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
  ])('that fail at %s by %j can be sent again', async (step, fault) => {
    fake.fail(fault, { matches: ({ path }) => path.includes(step) })
    expect(await send({ attachments: [report] })).toMatchObject({ code: 'unavailable' })
    expect(fake.messages()).toEqual([])
    expect(idOf(await send({ attachments: [report] }))).toMatch(/^F\d+$/)
  })

  test('may have been sent when sharing them gets no answer', async () => {
    fake.fail({ fault: 'lost' }, { matches: ({ path }) => path.endsWith('completeUploadExternal') })
    expect(await send({ attachments: [report] })).toMatchObject({ code: 'upstream' })
    expect(fake.messages()).toHaveLength(1)
  })

  test('without content are rejected', async () => {
    const empty = { ...report, source: { bytes: new Uint8Array() } }
    expect(await send({ attachments: [empty] })).toMatchObject({ code: 'invalid_request' })
  })
})

describe('typing', () => {
  const typing = (thread?: string) => bot.channel.typing?.({ to: 'C1', ...(thread !== undefined && { thread }) }, never())

  test('sets a status only in threads', async () => {
    const thread = fake.say({ text: 'x' })
    await typing()
    await typing(thread)
    expect(fake.statuses).toEqual([{ channel: 'C1', thread, status: 'is thinking…' }])
  })

  test('is not repeated after a refusal', async () => {
    const thread = fake.say({ text: 'x' })
    fake.fail({ fault: 'status', status: 200, body: { ok: false, error: 'missing_scope' } })
    await typing(thread)
    await typing(thread)
    expect(fake.requests).toHaveLength(1)
  })
})

/** Polling over real sockets: no message is lost, and none is confirmed before it is durable. */
import { AppError, isAllowed } from '@sluice/sdk'
import type { ProviderFault } from '@sluice/testkit/fake-provider'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { TELEGRAM_ADA, TELEGRAM_FORUM, TELEGRAM_GROUP } from './testing/fake.ts'
import { type Harness, type Run, STORING, startHarness } from './testing/harness.ts'

let harness: Harness
beforeEach(async () => {
  harness = await startHarness()
})
afterEach(() => harness.close())

const status = (code: number, description: string, parameters?: object): ProviderFault => ({
  fault: 'status',
  status: code,
  body: { ok: false, error_code: code, description, ...(parameters && { parameters }) },
})
const polls = { matches: ({ path }: { readonly path: string }) => path.endsWith('/getUpdates') }
const full = () => Promise.reject(new AppError('unavailable', 'Too many messages wait', { retryAfterSecs: 30 }))
/** Advances the clock and checks that the channel makes no request meanwhile. */
const expectNoRequest = async ({ host }: Run, ms: number) => {
  const before = harness.fake.requests.length
  await host.advance(ms)
  expect([host.clock.sleeping, harness.fake.requests.length]).toEqual([STORING + 1, before])
}
const MALLORY = { id: 666, username: 'mallory' }

test('messages arrive in order and are confirmed', async () => {
  const { fake, run } = harness
  const one = run()
  await one.idle()
  const question = fake.say({ text: 'any news?' })
  await one.idle()
  fake.say({ chat: TELEGRAM_FORUM, thread: 7, text: 'in a topic', replyTo: question.id })
  await one.idle()
  expect(one.delivered).toMatchObject([
    { id: `1001:${question.id}`, account: '700100', sender: '1001', to: { to: '1001' }, text: 'any news?' },
    { to: { to: String(TELEGRAM_FORUM), thread: '7' }, text: 'in a topic' },
  ])
  expect(one.health()).toEqual({ state: 'ok', lastEventAtMs: one.host.clock.nowMs() })
})

test('messages written while the channel was stopped arrive after the start', async () => {
  const { fake, run } = harness
  fake.say({ text: 'one' })
  fake.say({ text: 'two' })
  const first = run()
  await first.idle()
  await first.stop()
  fake.say({ text: 'three' })
  const second = run()
  await second.idle()
  expect([first.texts(), second.texts()]).toEqual([['one', 'two'], ['three']])
})

test('a backlog of several batches arrives complete and in order', async () => {
  const { fake, run } = harness
  const texts = Array.from({ length: 250 }, (_, index) => `message ${index}`)
  for (const text of texts) fake.say({ text })
  const one = run()
  await one.idle()
  expect(one.texts()).toEqual(texts)
})

test('updates continue with a smaller id after a week without updates', async () => {
  const { fake, run, callsOf } = harness
  const one = run()
  fake.say({ text: 'one' })
  await one.until(() => one.delivered.length === 1)
  await one.idle()
  const before = callsOf('getUpdates')
  fake.lapse()
  await one.until(() => callsOf('getUpdates') > before && fake.polled, 1000)
  fake.renumber(5)
  fake.say({ text: 'two' })
  fake.say({ text: 'three' })
  await one.until(() => one.delivered.length === 3)
  await one.idle()
  expect(one.texts()).toEqual(['one', 'two', 'three'])
})

test('a message that was not durable when the process was killed arrives again', async () => {
  const { fake, run } = harness
  fake.say({ text: 'one' })
  fake.say({ text: 'two' })
  const never = Promise.withResolvers<void>()
  const killed = run({ deliver: () => never.promise })
  await killed.until(() => killed.delivered.length === 1)
  expect(fake.waiting).toHaveLength(2)
  const next = run()
  await next.idle()
  expect(next.texts()).toEqual(['one', 'two'])
  expect(next.delivered[0]).toEqual(killed.delivered[0])
  never.resolve()
})

test('a message that cannot be stored is retried after earlier ones', async () => {
  const { fake, run } = harness
  let isFull = true
  fake.say({ text: 'one' })
  fake.say({ text: 'two' })
  const one = run({ deliver: async ({ text }) => (text === 'two' && isFull ? full() : undefined) })
  await one.until(() => one.health().state === 'down')
  expect(one.health().detail).toBe('Too many messages wait')
  await expectNoRequest(one, 29_000)
  await one.until(() => harness.callsOf('getUpdates') > 1, 1000)
  await one.until(() => one.delivered.length > 2)
  expect(fake.waiting.map(({ message }) => (message as { text: string }).text)).toEqual(['two'])
  isFull = false
  await one.idle(10_000)
  expect(one.texts().filter((text) => text === 'one')).toEqual(['one'])
})

test('a full inbox is retried without end', async () => {
  const { fake, run } = harness
  let refusals = 0
  fake.say({ text: 'one' })
  const one = run({ deliver: async () => (++refusals <= 40 ? full() : undefined) })
  await one.idle(200_000)
  expect(one.host.clock.monotonicMs()).toBeGreaterThan(2 * 3_600_000)
  expect(one.host.logs.filter(({ level }) => level === 'error')).toEqual([])
  expect(refusals).toBe(41)
})

test('an update that always fails is skipped after an hour', async () => {
  const { fake, run } = harness
  fake.say({ text: 'poison' })
  fake.say({ text: 'good' })
  const one = run({ deliver: async ({ text }) => (text === 'poison' ? Promise.reject(new TypeError('a bug')) : undefined) })
  await one.idle(60_000)
  expect(one.host.clock.monotonicMs()).toBeGreaterThanOrEqual(3_600_000)
  expect(one.texts().filter((text) => text === 'poison').length).toBeGreaterThanOrEqual(10)
  expect(one.texts().at(-1)).toBe('good')
  expect(one.host.logs.filter(({ level }) => level === 'error')).toMatchObject([{ fields: { skipped: 1 } }])
})

test('malformed updates are confirmed and ignored', async () => {
  const { fake, run } = harness
  for (const content of [{}, { message_id: 'x', from: 7, chat: [] }, { text: { a: 1 } }]) fake.update('message', content)
  fake.say({ text: 'good' })
  const one = run()
  await one.idle()
  expect(one.texts()).toEqual(['good'])
})

test('with mention_only, messages in groups that are not addressed to the bot are only overheard', async () => {
  const { fake, run } = harness
  const one = run({ config: { mention_only: true } })
  await one.idle()
  fake.say({ chat: TELEGRAM_GROUP, text: 'hello all' })
  fake.say({ chat: TELEGRAM_GROUP, text: '@sluice_bot hello', extra: { entities: [{ type: 'mention', offset: 0, length: 11 }] } })
  fake.say({ text: 'in private' })
  await one.idle()
  expect(one.delivered).toMatchObject([{ text: 'hello all', overheardOnly: true }, { text: 'hello' }, { text: 'in private' }])
  expect(one.delivered.filter(({ overheardOnly }) => overheardOnly)).toHaveLength(1)
})

describe('an album in a group', () => {
  const mention = { caption: '@sluice_bot what are these?', caption_entities: [{ type: 'mention', offset: 0, length: 11 }] }
  const picture = (album: string, more: object = {}) =>
    harness.fake.say({ chat: TELEGRAM_GROUP, extra: { photo: [{ file_id: 'f' }], media_group_id: album, ...more } })

  test.each([false, true])('is addressed as a whole by the caption of any member (mention_only: %s)', async (mention_only) => {
    picture('a')
    picture('a', mention)
    picture('a')
    const one = harness.run({ config: { mention_only } })
    await one.idle(1000)
    expect(one.delivered.map(({ addressed, group }) => [addressed, group?.id])).toEqual(Array(3).fill(['mention', 'a']))
  })

  test('waits for a caption in a later batch, also across a restart', async () => {
    picture('a')
    const first = harness.run({ config: { mention_only: true } })
    await first.until(() => harness.callsOf('getUpdates') === 1)
    await first.stop()
    const second = harness.run({ config: { mention_only: true } })
    picture('a', mention)
    await second.idle(1000)
    expect([...first.delivered, ...second.delivered].map(({ addressed }) => addressed)).toEqual(['mention', 'mention'])
  })

  test('without a mention is only overheard with mention_only, and holds up no other message for longer than a second', async () => {
    picture('a')
    picture('a')
    const one = harness.run({ config: { mention_only: true } })
    await one.idle(1000)
    harness.fake.say({ text: 'in private' })
    await one.idle()
    expect(one.delivered.map(({ text, overheardOnly }) => [text, overheardOnly])).toEqual([
      ['', true],
      ['', true],
      ['in private', undefined],
    ])
  })
})

describe('a button press', () => {
  const ask = async (by: Run) => {
    const buttons = [{ label: 'Approve', value: 'a:1', tone: 'good' as const }]
    const to = { to: String(TELEGRAM_GROUP) }
    const sent = await by.channel.send(to, { text: 'may I?', clientId: 'c', buttons }, new AbortController().signal)
    const [message] = harness.fake.sent(TELEGRAM_GROUP)
    if (!message) throw new Error('nothing was sent')
    return { sent, message }
  }

  test('names the message by its sent id and is answered once it is durable', async () => {
    const { fake, run } = harness
    const durable = Promise.withResolvers<void>()
    const one = run({ deliver: () => durable.promise })
    const { sent, message } = await ask(one)
    await one.idle()
    const query = fake.press({ message, data: 'a:1' })
    await one.until(() => one.delivered.length === 1)
    expect(one.delivered).toMatchObject([{ id: `cb:${query}`, sender: '1001', pressed: { message: sent.id, value: 'a:1' } }])
    expect(harness.callsOf('answerCallbackQuery')).toBe(0)
    durable.resolve()
    await one.until(() => fake.answered.length > 0)
    expect(fake.answered).toEqual([query])
  })

  test('of a stranger names the stranger as the sender', async () => {
    const { fake, run } = harness
    const one = run({ config: { allowed_users: ['1001'] } })
    const { message } = await ask(one)
    await one.idle()
    fake.press({ message, from: MALLORY, data: 'a:1' })
    await one.until(() => one.delivered.length === 1)
    expect(one.delivered).toMatchObject([{ sender: '666', pressed: { value: 'a:1' } }])
    const { allow, normalise, matches } = one.channel
    expect(['666', '1001'].map((sender) => isAllowed(allow, sender, normalise, matches))).toEqual([false, true])
  })

  test('does not hold up later updates when its answer hangs', async () => {
    const { fake, run } = harness
    const one = run()
    const { message } = await ask(one)
    await one.idle()
    fake.fail({ fault: 'hang' }, { matches: ({ path }) => path.endsWith('/answerCallbackQuery') })
    fake.press({ message, data: 'a:1' })
    fake.say({ text: 'next' })
    await one.until(() => one.texts().includes('next'))
    await one.idle()
    expect(one.health().state).toBe('ok')
  })
})

describe('a name on the allowlist', () => {
  const isAccepted = ({ channel: { allow, normalise, matches } }: Run, sender: string) => isAllowed(allow, sender, normalise, matches)

  test('matches only the first account that used it, also after a restart', async () => {
    const { fake, run } = harness
    const config = { allowed_users: ['@Ada'] }
    const one = run({ config })
    fake.say({ text: 'hi' })
    await one.until(() => one.delivered.length === 1)
    expect(isAccepted(one, '1001')).toBe(true)
    await one.stop()
    const two = run({ config })
    fake.say({ from: { ...TELEGRAM_ADA, username: 'lovelace' }, text: 'new name' })
    fake.say({ from: { id: 666, username: 'ada' }, text: 'I am ada' })
    await two.until(() => two.delivered.length === 2)
    expect([isAccepted(two, '1001'), isAccepted(two, '666')]).toEqual([true, false])
    expect(two.host.logs.filter(({ level }) => level === 'warn')).toMatchObject([{ fields: { name: 'ada', sender: '666', first: '1001' } }])
  })
})

describe('a failed poll', () => {
  test.each<[name: string, fault: ProviderFault]>([
    ['500', { fault: 'status', status: 500 }],
    ['502 with a web page', { fault: 'status', status: 502, body: '<html></html>' }],
    ['a reset', { fault: 'reset' }],
    ['a lost answer', { fault: 'lost' }],
    ['an answer that is not JSON', { fault: 'garbage' }],
    ['truncated JSON', { fault: 'cut' }],
    ['an answer without a list', { fault: 'status', status: 200, body: { ok: true, result: {} } }],
    ['updates without ids', { fault: 'status', status: 200, body: { ok: true, result: [{ message: {} }] } }],
  ])('(%s) delays messages and loses none', async (_name, fault) => {
    const { fake, run } = harness
    fake.say({ text: 'one' })
    fake.fail(fault, { ...polls, times: 3 })
    const one = run()
    await one.until(() => one.health().state === 'down')
    await one.idle(1000)
    expect(one.texts()).toEqual(['one'])
  })

  test('with status 429 is repeated after the time asked for', async () => {
    const { fake, run } = harness
    fake.fail(status(429, 'Too Many Requests: retry after 77', { retry_after: 77 }), polls)
    const one = run()
    await one.until(() => one.health().state === 'down')
    await expectNoRequest(one, 76_000)
    await one.idle(1000)
  })

  test('because of another poller is reported and repeated after 35 s', async () => {
    const { fake, run } = harness
    fake.fail(status(409, 'Conflict: terminated by other getUpdates request'), polls)
    const one = run()
    await one.until(() => one.health().state === 'down')
    expect(one.health().detail).toBe('telegram answered 409: Conflict: terminated by other getUpdates request')
    await expectNoRequest(one, 34_000)
    await one.idle(1000)
  })

  test('because of a bad token is reported and not repeated for ten minutes', async () => {
    const { fake, run } = harness
    fake.changeToken('700100:another')
    const one = run()
    await one.until(() => one.health().state === 'down')
    expect(one.health().detail).toContain('telegram answered 401: Unauthorized')
    expect(fake.requests).toHaveLength(1)
    await expectNoRequest(one, 599_000)
  })

  test('is not sent with a malformed token', async () => {
    const { fake, run } = harness
    const one = run({ config: { bot_token: '700100:a/b' } })
    await one.until(() => one.health().state === 'down')
    expect(one.channel.missingConfig).toBe('a bot_token of the form <number>:<letters>')
    expect(fake.requests).toEqual([])
  })

  test('because of a revoked token loses no message', async () => {
    const { fake, run } = harness
    const one = run()
    await one.idle()
    fake.fail(status(401, 'Unauthorized'), polls)
    fake.say({ text: 'one' })
    await one.until(() => one.health().state === 'down')
    fake.say({ text: 'two' })
    await one.idle(60_000)
    expect(one.texts()).toEqual(['one', 'two'])
  })

  test('is not repeated at once when the server does not hold polls', async () => {
    const { fake, run } = harness
    fake.fail({ fault: 'status', status: 200, body: { ok: true, result: [] } }, { ...polls, times: 1000 })
    const one = run()
    await one.until(() => one.host.clock.sleeping > STORING)
    await expectNoRequest(one, 999)
  })
})

describe('updates that the platform no longer keeps', () => {
  const DAY_MS = 86_400_000
  const why = 'the platform keeps updates for one day'

  test('are reported after more than a day without a poll', async () => {
    const { fake, run } = harness
    const one = run()
    await one.idle()
    const sinceMs = one.host.clock.nowMs()
    fake.cut({ isDown: true })
    await one.until(() => one.host.clock.nowMs() > sinceMs + DAY_MS, 60_000)
    fake.cut()
    await one.idle(60_000)
    expect(one.gaps).toEqual([{ sinceMs, why }])
  })

  test('are reported after a restart, but not after a short one', async () => {
    const { keyValue, run } = harness
    const first = run()
    await first.idle()
    await first.stop()
    expect(first.gaps).toEqual([])
    const second = run()
    await second.idle()
    await second.stop()
    expect(second.gaps).toEqual([])
    const polledAtMs = Number(await keyValue.get('polled_at'))
    expect(polledAtMs).toBe(first.host.clock.nowMs())
    await keyValue.set('polled_at', polledAtMs - DAY_MS - 1)
    const third = run()
    await third.idle()
    expect(third.gaps).toEqual([{ sinceMs: polledAtMs - DAY_MS - 1, why }])
  })
})

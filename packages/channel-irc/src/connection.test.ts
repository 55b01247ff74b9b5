/** The connection and its sends against the fake server. */
import type { Channel, Inbound } from '@sluice/sdk'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { type Listening, startListening } from '@sluice/testkit/listening'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import * as v from 'valibot'
import { afterEach, expect, test, vi } from 'vitest'
import { ircSection } from './config.ts'
import feature from './index.ts'
import { CAPABILITIES, type IrcFake, type IrcFakeOptions } from './testing/fake.ts'
import { connect } from './testing/section.ts'

const { signal } = new AbortController()
const WITHOUT_HISTORY = { capabilities: CAPABILITIES.filter((name) => name !== 'draft/chathistory') }
let fake: IrcFake
let listening: Listening
let channel: Channel
let clock: TestClock
let received: Inbound[]

async function start(options: IrcFakeOptions = {}, more: object = {}): Promise<void> {
  clock = testClock()
  const connected = await connect({ nowMs: clock.nowMs, ...options })
  fake = connected.fake
  received = []
  const host = testHost({ clock, keyValue: memoryKeyValue() })
  const [built] = feature.build(host, v.parse(ircSection.schema, { ...connected.section, ...more })).channels ?? []
  if (!built) throw new Error('The section of the fake builds no channel.')
  channel = built
  listening = startListening(channel, host, async (inbound) => void received.push(inbound))
  await soon(() => expect(listening.health.state).not.toBe('connecting'))
}
const soon = (check: () => void) => vi.waitFor(check, { timeout: 20_000, interval: 5 })
const texts = () => received.map(({ text }) => text)
const send = (to: string, text: string) => channel.send({ to }, { text, clientId: 'c-1' }, signal)
/** Lets the delay before the next connection pass. */
async function reconnect(): Promise<void> {
  await soon(() => expect(listening.retryAtMs).toBeDefined())
  await clock.advance((listening.retryAtMs ?? 0) - clock.monotonicMs())
  await soon(() => expect(listening.health.state).toBe('ok'))
}

afterEach(async () => {
  await listening.stop()
  await fake.close()
})

test('a reply has the id of the server, names the person in a channel, and quotes the message', async () => {
  await start()
  const sent = await channel.send({ to: '#ops', replyTo: 'm-0', more: { nick: 'ada' } }, { text: 'one\ntwo', clientId: 'c-1' }, signal)
  expect(sent).toEqual({ id: 'm-1' })
  expect(fake.sent.map(({ text, tags }) => [text, tags])).toEqual([
    ['ada: one', { '+draft/reply': 'm-0' }],
    ['two', { '+draft/reply': 'm-0' }],
  ])
})

test('a message to the operators of a channel has a room of its own, and so has the answer', async () => {
  await start({ supports: ['CHANTYPES=#', 'STATUSMSG=@+', 'CHATHISTORY=50'] })
  fake.say({ text: 'sluice: who is banned?', to: '@#ops' })
  await soon(() => expect(received).toMatchObject([{ to: { to: '@#ops' }, addressed: 'mention', text: 'who is banned?' }]))
  await send('@#ops', 'nobody')
  expect(fake.sent).toMatchObject([{ target: '@#ops', text: 'nobody' }])
})

test('a server without such messages refuses their targets', async () => {
  await start()
  await expect(send('@#ops', 'nobody')).rejects.toThrow('No such nick')
})

test('a stop waits for the message that is being sent', async () => {
  await start()
  const sending = send('ada', 'one')
  // The message is written, and its confirmation is on its way.
  await new Promise((resolve) => setImmediate(resolve))
  await listening.stop()
  expect(await sending).toEqual({ id: 'm-1' })
  await expect(send('ada', 'two')).rejects.toMatchObject({ code: 'unavailable' })
  expect(fake.sent.map(({ text }) => text)).toEqual(['one'])
})

test('the server accepts each line of the longest message', async () => {
  await start()
  await send('ada', '😀'.repeat(250))
  expect(fake.sent.map(({ text }) => text).join('')).toBe('😀'.repeat(250))
  expect(fake.sent.length).toBeGreaterThan(1)
})

test('no text of a message becomes a command', async () => {
  await start()
  await send('ada', 'hi\r\nQUIT :bye\0\x01VERSION')
  expect(fake.sent.map(({ text }) => text)).toEqual(['hi', 'QUIT :byeVERSION'])
  for (const to of ['ada,bob', 'ada\r\nQUIT', '$*', ':x', ''])
    await expect(send(to, 'x')).rejects.toMatchObject({ code: 'invalid_request' })
})

test('a refusal says whether the message may be sent again', async () => {
  await start()
  await expect(send('nobody', 'x')).rejects.toMatchObject({ code: 'invalid_request' })
  await expect(send('#elsewhere', 'x')).rejects.toMatchObject({ code: 'unavailable' })
  fake.fail({ fault: 'status', status: 429 })
  await expect(send('ada', 'x')).rejects.toMatchObject({ code: 'rate_limited' })
  expect(fake.sent).toEqual([])
  fake.fail({ fault: 'lost' })
  await expect(send('ada', 'x')).rejects.toMatchObject({ code: 'upstream' })
  expect(fake.sent).toHaveLength(1)
  await soon(() => expect(listening.retryAtMs).toBeDefined())
  await expect(send('ada', 'y')).rejects.toMatchObject({ code: 'unavailable' })
})

test('after four lines, each next one waits for its interval', async () => {
  await start({}, { send_interval_ms: 2000 })
  const sends = Promise.all(Array.from({ length: 6 }, (_, index) => send('ada', `${index}`)))
  await soon(() => expect(fake.sent).toHaveLength(4))
  await clock.advance(2000)
  await soon(() => expect(fake.sent).toHaveLength(5))
  await clock.advance(2000)
  await sends
  expect(fake.sent.map(({ text }) => text)).toEqual(['0', '1', '2', '3', '4', '5'])
})

test('of 20 messages during 60 s without a connection each arrives once, where the server keeps them', async () => {
  await start()
  fake.say({ text: 'before' })
  await soon(() => expect(texts()).toEqual(['before']))
  fake.cut({ isDown: true })
  await soon(() => expect(listening.retryAtMs).toBeDefined())
  for (let index = 0; index < 20; index += 1) {
    fake.say({ text: `${index}`, ...(index % 2 === 0 && { to: 'sluice' }) })
    await clock.advance(3000)
  }
  fake.cut()
  await reconnect()
  await soon(() => expect(new Set(received.map(({ id }) => id)).size).toBe(21))
  expect(listening.gaps).toEqual([])
})

test('more missed messages than one page are read', async () => {
  await start()
  fake.cut({ isDown: true })
  await soon(() => expect(listening.retryAtMs).toBeDefined())
  for (let index = 0; index < 120; index += 1) {
    fake.say({ text: `${index}` })
    if (index % 20 === 0) await clock.advance(1)
  }
  fake.cut()
  await reconnect()
  await soon(() => expect(new Set(texts()).size).toBe(120))
})

test('a server without a history leaves a gap that names its beginning', async () => {
  await start(WITHOUT_HISTORY)
  const startMs = clock.nowMs()
  fake.cut({ isDown: true })
  await soon(() => expect(listening.retryAtMs).toBeDefined())
  await clock.advance(60_000)
  fake.cut()
  await reconnect()
  await soon(() => expect(listening.gaps).toMatchObject([{ sinceMs: startMs }]))
  fake.say({ text: 'after' })
  await soon(() => expect(texts()).toEqual(['after']))
})

test('a channel that refuses the bot is shown in the health until the bot is in it', async () => {
  await start()
  fake.closed.add('#ops')
  fake.emit(':op!u@h KICK #ops sluice :out')
  await soon(() => expect(listening.health).toMatchObject({ state: 'down', detail: expect.stringContaining('#ops') }))
  await expect(send('#ops', 'x')).rejects.toMatchObject({ code: 'unavailable' })
  fake.closed.clear()
  await soon(() => expect(clock.sleeping).toBeGreaterThan(0))
  await clock.advance(30_000)
  await soon(() => expect(listening.health.state).toBe('ok'))
})

test('a server without SASL does not get the password, and a wrong server password is refused', async () => {
  await start({ capabilities: ['message-tags'] })
  expect(listening.health).toMatchObject({ state: 'down', detail: expect.stringContaining('offers no SASL') })
  expect(fake.lines.join('\n')).not.toContain('AUTHENTICATE')
  await listening.stop()
  await fake.close()
  await start({ serverPassword: 'right' }, { server_password: 'wrong' })
  expect(listening.health).toMatchObject({ state: 'down', detail: expect.stringContaining('464') })
})

test('typing shows only where the allowance for lines permits', async () => {
  await start({}, { send_interval_ms: 2000 })
  for (let index = 0; index < 10; index += 1) await channel.typing?.({ to: 'ada' }, signal)
  await soon(() => expect(fake.lines.filter((line) => line.includes('TAGMSG'))).toHaveLength(2))
  expect(fake.lines.filter((line) => line.includes('TAGMSG'))[0]).toBe('@+typing=active TAGMSG ada')
})

import type { Inbound } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import { QuotedMessages, type ReadMessage } from './quoted-messages.ts'

const root: ReadMessage = { author: { id: 'ben', name: 'Ben' }, isOfBot: false, text: 'Invoice 4711 is due' }
const quoted = { id: 'm1', author: { id: 'ben', name: 'Ben' }, text: 'Invoice 4711 is due' }
const said = (id: string, more: Partial<Inbound> = {}): Inbound => ({
  id,
  account: 'a',
  sender: 'ada',
  to: { to: 'room', thread: 'm1' },
  addressed: 'overheard',
  text: 'what do you think?',
  ...more,
})

function reader(read: (id: string, signal: AbortSignal) => Promise<ReadMessage | undefined>) {
  const host = testHost()
  const calls: string[] = []
  const quotes = new QuotedMessages({
    host,
    channel: 'c',
    read(id, conversation, signal) {
      calls.push(`${conversation} ${id}`)
      return read(id, signal)
    },
  })
  return { host, calls, quotes }
}

test('a message is read once, and quoted by each message that answers it', async () => {
  const { quotes, calls } = reader(async () => root)
  const [first, second] = await Promise.all([quotes.quoting(said('m2'), 'm1'), quotes.quoting(said('m3'), 'm1')])
  expect([first.quoted, second.quoted]).toEqual([quoted, quoted])
  expect(calls).toEqual(['room m1'])
})

test('the first message of a thread is quoted once for each person', async () => {
  const { quotes, calls } = reader(async () => root)
  const [first, second] = await Promise.all([quotes.quotingOnce(said('m2'), 'm1'), quotes.quotingOnce(said('m3'), 'm1')])
  expect([first.quoted, second.quoted]).toEqual([quoted, undefined])
  expect((await quotes.quotingOnce(said('m4', { sender: 'ben' }), 'm1')).quoted).toEqual({ ...quoted, by: 'sender' })
  expect(calls).toEqual(['room m1'])
})

test('a message does not overtake one of its conversation that waits for a quote', async () => {
  const read = Promise.withResolvers<ReadMessage>()
  const { quotes } = reader(() => read.promise)
  const order: string[] = []
  const arrive = async (message: Inbound, id: string) => order.push((await quotes.quoting(message, id)).id)
  const waiting = arrive(said('m2'), 'm1')
  const next = arrive(said('m3'), '')
  await arrive(said('m4', { to: { to: 'elsewhere' } }), '')
  expect(order).toEqual(['m4'])
  read.resolve(root)
  await Promise.all([waiting, next])
  expect(order).toEqual(['m4', 'm2', 'm3'])
})

test('the message that begins a thread, changes and presses quote nothing', async () => {
  const { quotes, calls } = reader(async () => root)
  const edit = said('e1', { changes: { message: 'm2', what: 'edited' } })
  const press = said('p1', { pressed: { message: 'm2', value: 'yes' } })
  for (const message of [said('m1'), edit, press]) expect(await quotes.quotingOnce(message, 'm1')).toBe(message)
  const known = said('m2', { quoted })
  expect(await quotes.quoting(known, 'm1')).toBe(known)
  expect(calls).toEqual([])
})

test('an answer to a message of the bot is a reply to it', async () => {
  const { quotes } = reader(async () => ({ ...root, isOfBot: true }))
  expect(await quotes.quoting(said('m2'), 'm1')).toMatchObject({ addressed: 'reply', quoted: { by: 'bot' } })
  expect(await quotes.quoting(said('m3', { addressed: 'mention' }), 'm1')).toMatchObject({ addressed: 'mention' })
})

test('a quote with the words of others is neither of the bot nor of the sender', async () => {
  const shared = { ...root, isOfBot: true, forwarded: { text: 'ignore all' } }
  const { quotes } = reader(async () => shared)
  const message = await quotes.quoting(said('m2', { sender: 'ben' }), 'm1')
  expect(message.quoted?.text).toContain('ignore all')
  expect([message.quoted?.by, message.addressed]).toEqual([undefined, 'overheard'])
})

test('a message arrives with a line when the quoted one is gone or cannot be read, which is tried again', async () => {
  const gone = reader(async () => undefined)
  expect((await gone.quotes.quoting(said('m2'), 'm1')).quoted).toEqual({ id: 'm1', text: '[a message that could not be read]' })
  const { quotes, calls, host } = reader(() => Promise.reject(new Error('missing_scope')))
  expect((await quotes.quoting(said('m2'), 'm1')).quoted?.text).toBe('[a message that could not be read]')
  const answer = said('m3', { inReplyTo: 'm1' })
  expect(await quotes.quoting(answer, 'm1'), 'the daemon looks for inReplyTo').toBe(answer)
  expect(calls).toHaveLength(2)
  expect(JSON.stringify(host.logs)).toContain('missing_scope')
})

test('a platform that does not answer delays a message by 1.5 s', async () => {
  const { quotes, host } = reader(
    (_, signal) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  )
  const waiting = quotes.quoting(said('m2'), 'm1')
  await host.advance(1500)
  expect((await waiting).quoted?.text).toBe('[a message that could not be read]')
})

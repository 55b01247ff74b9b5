import { type Channel, chatSessionKey, type SopEvent } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { sopRun } from '@sluice/testkit/store-rules/sop-samples'
import { expect, test } from 'vitest'
import { newsOfRun } from './news-of-run.ts'

const CHANNEL: Channel = { name: 'chat', allow: ['*'], limits: { text: 100, unit: 'utf16' }, send: async () => ({ id: 'p' }) }
const ORIGIN = { channel: 'chat', account: 'bot', to: { to: 'anna', replyTo: 'm1' }, sender: 'anna' }

const newsOf = (event: Partial<SopEvent>, texts = {}, channels: readonly Channel[] = [CHANNEL]) =>
  newsOfRun(
    { clock: testClock(50), features: { channels: () => channels, texts: () => texts } },
    sopRun('r', { event: { ...sopRun('r').event, ...event } }),
  )

test('the person is told in the conversation of the message, once an hour', () => {
  expect(newsOf({ origin: ORIGIN, standing: 'stranger' }, { unanswered: 'No answer.' })).toMatchObject({
    held: { client: '["chat","bot","anna",null]', cause: 'unanswered', sinceMs: 50 },
    quietMs: 3_600_000,
    notice: [{ channel: 'chat', account: 'bot', to: ORIGIN.to, text: 'No answer.', turnId: null }],
  })
})

test('the person whose turn started the run is told in the conversation of the turn, which names the procedure', () => {
  const session = chatSessionKey({ channel: 'chat', account: 'bot', conversation: 'room', thread: 't1' })
  expect(newsOf({ session, standing: 'listed' }, { run_not_completed: 'No {procedure}.' })).toMatchObject({
    held: { client: '["chat","bot","room","t1"]', cause: 'unanswered:procedure deploy' },
    quietMs: 3_600_000,
    notice: [{ channel: 'chat', account: 'bot', to: { to: 'room', thread: 't1' }, text: 'No deploy.' }],
  })
})

test.each<[string, ReturnType<typeof newsOf>]>([
  ['no message started the run', newsOf({})],
  ['the message proves no sender', newsOf({ origin: ORIGIN, standing: 'unverified' })],
  ['the text is switched off', newsOf({ origin: ORIGIN }, { unanswered: '' })],
  ['a turn outside of chats started the run', newsOf({ session: 'device:d1/notes', standing: 'operator' })],
  ['the words of the turn prove no sender', newsOf({ session: 'channel:chat/bot/anna/anna', standing: 'unverified' })],
  ['the text about runs of turns is switched off', newsOf({ session: 'channel:chat/bot/anna/anna' }, { run_not_completed: '' })],
])('nobody is told when %s', (_, news) => {
  expect(news).toBeUndefined()
})

test('the notice waits for a channel that is not there', () => {
  const text = 'x'.repeat(1999)
  expect(newsOf({ origin: ORIGIN }, { unanswered: text }, [])?.notice).toMatchObject([{ channel: 'chat', to: ORIGIN.to, text }])
})

import { startFakeProvider } from '@sluice/testkit/fake-provider'
import { expect, onTestFinished, test } from 'vitest'
import type { Message } from './history.ts'
import { createRecorder } from './recorder.ts'
import { settle } from './settle.ts'

const IDLE = { turns_running: 0, turns_queued: 0, messages_pending: 0, replies_pending: 0 }
/** Work that does not end is waited for the short time. The long one leaves a slow machine enough. */
const [SHORT_MS, LONG_MS] = [400, 30_000]
const question: Message = { mark: 'm-1', kind: 'mail', sender: 'ada', id: '1', isPulled: true, parts: 1, usesTool: false, gate: 'approved' }
const answer: Message = {
  mark: 'm-2',
  kind: 'mail',
  sender: 'ada',
  id: '2',
  isPulled: true,
  parts: 1,
  usesTool: false,
  answers: { mark: 'm-1', approve: true },
}

/** Settles with a daemon whose inbox has these ids. Resolves to the work that is left. */
async function settled(
  ids: readonly string[],
  { status = IDLE, waiting = 0, isAcknowledged = false, ms = LONG_MS, messages = [question, answer] } = {},
): Promise<string | undefined> {
  const daemon = await startFakeProvider(({ path }) => ({
    status: 200,
    body: path === '/api/status' ? status : { messages: ids.map((message_id) => ({ message_id })) },
  }))
  onTestFinished(() => daemon.close())
  const recorder = createRecorder()
  for (const message of messages) recorder.add(message)
  recorder.see({ type: 'asked', mark: 'm-1', afterTool: false })
  const traffic = {
    waiting,
    async retry() {
      if (isAcknowledged) traffic.waiting = 0
    },
  }
  return settle(daemon.url, recorder, traffic, ms)
}

test('an answer that decided its question need not reach the model', async () => {
  expect(await settled(['1', '2'])).toBeUndefined()
})

test('a request that was not acknowledged is delivered again', async () => {
  expect(await settled(['1', '2'], { waiting: 1, isAcknowledged: true })).toBeUndefined()
})

test.each([
  ['an answer that did not arrive', ['1'], {}, 'the answer m-2 on mail'],
  ['a message that did not reach the model', ['1', '3'], { messages: [question, { ...question, mark: 'm-3', id: '3' }] }, 'm-3 on mail'],
  ['a running turn', ['1', '2'], { status: { ...IDLE, turns_running: 1 } }, '1 turns'],
  ['a request that was not acknowledged', ['1', '2'], { waiting: 1 }, '1 requests'],
])('%s is work that is left', async (_, ids, options, left) => {
  expect(await settled(ids, { ...options, ms: SHORT_MS })).toContain(left)
})

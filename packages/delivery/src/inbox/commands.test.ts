import { AppError } from '@sluice/sdk'
import { assistant, user } from '@sluice/testkit/store-rules/samples'
import { describe, expect, test } from 'vitest'
import { advanceUntil, bench, message, open, settle, setUpDeliveries, states, until } from '../testing/delivery-bench.ts'
import { commandIn } from './commands.ts'

setUpDeliveries()

test.each([
  ['/stop', 'stop'],
  [' /STOP\n', 'stop'],
  ['/new@my_bot', 'new'],
  ['/status', 'status'],
  ['/help', 'help'],
  ['/stop now', undefined],
  ['stop', undefined],
  ['/stopp', undefined],
  ['please /stop', undefined],
  ['/help@', undefined],
  [`/help@${'x'.repeat(200)}`, undefined],
])('%j is the command %s', (text, command) => {
  expect(commandIn(text)).toBe(command)
})

/** A bench whose turns end when they are released or aborted. */
async function slowBench(texts = {}) {
  const released = Promise.withResolvers<void>()
  const aborts = new Map<string, (reason: AppError) => void>()
  const made = await bench({
    texts,
    async turn({ text, delivery }) {
      const aborted = Promise.withResolvers<never>()
      aborts.set(delivery?.turnId ?? '', aborted.reject)
      await Promise.race([released.promise, aborted.promise])
      return `re: ${text}`
    },
    abort(id) {
      aborts.get(id)?.(new AppError('aborted', 'The turn was aborted'))
      return aborts.delete(id)
    },
  })
  return { made, release: released.resolve }
}

const lastText = ({ sent }: Awaited<ReturnType<typeof bench>>) => sent.at(-1)?.text

describe('/stop', () => {
  test('ends the turn of its sender while it runs, without a dead letter, and the next message runs', async () => {
    const { made, release } = await slowBench()
    await made.receive(message('m1'), message('m2'))
    await until(() => made.turns.length === 1)
    await made.receive(message('c', { text: '/stop' }))
    await until(() => made.turns.length === 2)
    expect(made.sent.map(({ text }) => text)).toEqual(['Stopped.'])
    release()
    await until(() => made.sent.length === 2)
    expect(lastText(made)).toBe('re: text of m2')
    await settle()
    expect(await states(made)).toEqual({ inbox: ['done', 'done', 'done'], outbox: ['sent', 'sent'] })
  })

  test('is recognised in what the sender typed, where the text has more', async () => {
    const { made, release } = await slowBench()
    release()
    await made.receive(message('c', { text: 'Subject: Re: hi\n\n/stop\n\n> hello', typed: '/stop' }))
    await made.receive(message('m', { text: '/stop', typed: 'not a command' }))
    await until(() => made.sent.length === 2)
    expect(made.sent.map(({ text }) => text).toSorted()).toEqual(['Nothing is running.', 're: /stop'])
  })

  test('does not end the turn of another sender', async () => {
    const { made, release } = await slowBench()
    await made.receive(message('m1'))
    await until(() => made.turns.length === 1)
    await made.receive(message('c', { text: '/stop', sender: '+15550003333' }))
    await until(() => made.sent.length === 1)
    expect(lastText(made)).toBe('Nothing is running.')
    release()
    await until(() => made.sent.length === 2)
    expect(lastText(made)).toBe('re: text of m1')
  })

  test('a repeat of the platform is answered once', async () => {
    const made = await bench()
    for (let repeat = 0; repeat < 3; repeat++) await made.receive(message('c', { text: '/stop' }))
    await settle()
    expect(made.sent.map(({ text }) => text)).toEqual(['Nothing is running.'])
    expect(made.turns).toEqual([])
  })
})

test('/status tells the agent, the running turn and the messages that wait', async () => {
  const { made, release } = await slowBench()
  await made.receive(message('s1', { text: '/status' }))
  await until(() => made.sent.length === 1)
  expect(lastText(made)).toBe('Agent main is ready. Messages that wait: 0.')
  await made.receive(message('m1'), message('m2'), message('m3', { sender: '+15550003333' }))
  await until(() => made.turns.length === 2)
  await made.receive(message('s2', { text: '/status' }))
  await until(() => made.sent.length === 2)
  expect(lastText(made)).toBe('Agent main has been working on your message for 0 seconds. Messages that wait: 1.')
  release()
  await until(() => made.sent.length === 5)
})

test('/help is answered in the words of the configuration', async () => {
  const made = await bench({ texts: { help: '/stop hält an' } })
  await made.receive(message('c', { text: '/help' }))
  await until(() => made.sent.length === 1)
  expect(made.sent).toMatchObject([{ text: '/stop hält an', to: { to: '+15550002222' } }])
})

test('/new waits for the messages before it, and then hides the conversation from later turns', async () => {
  const { made, release } = await slowBench()
  await made.receive(message('m1'), message('c', { text: '/new' }), message('m2'))
  await until(() => made.turns.length === 1)
  const session = made.turns[0]?.session ?? ''
  await made.store.turns.finish({
    ...ENDED,
    id: 'before',
    sessionId: session,
    messages: [user('earlier'), assistant('answer')],
  })
  release()
  await until(() => made.sent.length === 3)
  expect(made.sent.map(({ text }) => text)).toEqual([
    're: text of m1',
    'This is a new conversation. The earlier messages are kept, but no longer read.',
    're: text of m2',
  ])
  expect(await made.store.sessions.conversation(session, 10)).toMatchObject({ upTo: 2, summary: { text: '', upTo: 2 }, messages: [] })
  expect(await made.store.sessions.history(session, 10)).toHaveLength(2)
})

test('a command that a full disk interrupts is answered once the store works again', async () => {
  const store = open()
  let isFull = true
  const under: typeof store.under = (lease) => {
    const owned = store.under(lease)
    const done: typeof owned.inbox.done = (...given) =>
      isFull ? Promise.reject(new AppError('unavailable', 'the disk is full')) : owned.inbox.done(...given)
    return { ...owned, inbox: { ...owned.inbox, done } }
  }
  const made = await bench({ store: { ...store, under } })
  await made.receive(message('c', { text: '/help' }))
  await settle()
  expect(made.sent).toEqual([])
  isFull = false
  await advanceUntil(() => made.sent.length === 1)
  await settle()
  expect(await states(made)).toEqual({ inbox: ['done'], outbox: ['sent'] })
})

const ENDED = {
  agent: 'main',
  source: 'x',
  status: 'done',
  input: 'earlier',
  response: 'answer',
  model: 'm',
  error: null,
  inputTokens: 0,
  outputTokens: 0,
  costUsd: 0,
  attempts: 1,
  createdAtMs: 1,
  endedAtMs: 1,
} as const

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
    async turn({ text, delivery, signal }) {
      const aborted = Promise.withResolvers<never>()
      aborts.set(delivery?.turnId ?? '', aborted.reject)
      signal?.addEventListener('abort', () => aborted.reject(new AppError('aborted', 'The turn was aborted')))
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

  test('ends a message that waits to be tried again, and the next one runs', async () => {
    const away = () => Promise.reject(new AppError('unavailable', 'the model is away', { isPassing: true }))
    const made = await bench({ turn: async ({ text }) => (text === 'text of m1' ? away() : `re: ${text}`) })
    await made.receive(message('m1'), message('m2'))
    await until(() => made.turns.length === 1)
    await settle()
    await made.receive(message('c', { text: '/stop' }))
    await until(() => made.sent.length === 2)
    expect(made.sent.map(({ text }) => text).toSorted()).toEqual(['Stopped.', 're: text of m2'])
    await settle()
    expect(await states(made)).toEqual({ inbox: ['done', 'done', 'done'], outbox: ['sent', 'sent'] })
  })

  test('leaves a message that waits in the queue when the store fails', async () => {
    let isAway = true
    const away = () => Promise.reject(new AppError('unavailable', 'the model is away', { isPassing: true }))
    const store = open()
    const under: typeof store.under = (lease) => {
      const owned = store.under(lease)
      const done: typeof owned.inbox.done = (...given) =>
        isAway ? Promise.reject(new AppError('unavailable', 'the disk is full')) : owned.inbox.done(...given)
      return { ...owned, inbox: { ...owned.inbox, done } }
    }
    const made = await bench({ store: { ...store, under }, turn: async ({ text }) => (isAway ? away() : `re: ${text}`) })
    await made.receive(message('m1'))
    await until(() => made.turns.length === 1)
    await settle()
    await made.receive(message('c', { text: '/stop' }))
    await settle()
    isAway = false
    await advanceUntil(() => made.sent.length > 0)
    await settle()
    expect(await states(made)).toMatchObject({ inbox: ['done', 'done'] })
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

describe('/new', () => {
  const earlier = (session: string) => ({ ...ENDED, id: 'before', sessionId: session, messages: [user('earlier'), assistant('answer')] })

  test('stops the running turn, hides the conversation, and lets the messages that wait run in the new one', async () => {
    const { made, release } = await slowBench()
    await made.receive(message('m1'), message('m2'))
    await until(() => made.turns.length === 1)
    const session = made.turns[0]?.session ?? ''
    await made.store.turns.finish(earlier(session))
    await made.receive(message('c', { text: '/new' }), message('m3'))
    await until(() => made.turns.length === 2)
    expect(await made.store.sessions.conversation(session, 10)).toMatchObject({ upTo: 2, summary: { text: '', upTo: 2 }, messages: [] })
    release()
    await until(() => made.sent.length === 3)
    expect(made.sent.map(({ text }) => text)).toEqual([
      'Stopped. This is a new conversation. The earlier messages are kept, but no longer read.',
      're: text of m2',
      're: text of m3',
    ])
    expect(await made.store.sessions.history(session, 10)).toHaveLength(2)
    await settle()
    expect(await states(made)).toEqual({ inbox: Array(4).fill('done'), outbox: Array(3).fill('sent') })
  })

  test('keeps the next turn from beginning before the new conversation has', async () => {
    const store = open()
    const stored = Promise.withResolvers<void>()
    const under: typeof store.under = (lease) => {
      const owned = store.under(lease)
      const conversation: typeof owned.sessions.conversation = async (...given) => {
        await stored.promise
        return owned.sessions.conversation(...given)
      }
      return { ...owned, sessions: { ...owned.sessions, conversation } }
    }
    const made = await bench({ store: { ...store, under } })
    await made.receive(message('c', { text: '/new' }))
    await made.receive(message('m1'))
    await settle()
    expect(made.turns).toEqual([])
    stored.resolve()
    await until(() => made.sent.length === 2)
  })

  test('is answered while a message before it waits to be tried again, which then runs in the new conversation', async () => {
    let isAway = true
    const away = () => Promise.reject(new AppError('unavailable', 'the model is away', { isPassing: true }))
    const made = await bench({ turn: async ({ text }) => (isAway ? away() : `re: ${text}`) })
    await made.receive(message('m1'))
    await until(() => made.turns.length === 1)
    await settle()
    await made.receive(message('c', { text: '/new' }))
    await until(() => made.sent.length === 1)
    expect(lastText(made)).toBe('This is a new conversation. The earlier messages are kept, but no longer read.')
    isAway = false
    await advanceUntil(() => made.sent.length === 2)
    expect(lastText(made)).toBe('re: text of m1')
  })

  test('waits 10 seconds at most for a turn that does not end', async () => {
    const released = Promise.withResolvers<string>()
    const made = await bench({ turn: () => released.promise })
    await made.receive(message('m1'))
    await until(() => made.turns.length === 1)
    await made.receive(message('c', { text: '/new' }))
    await advanceUntil(() => made.sent.length === 1)
    expect(lastText(made)).toMatch(/^Stopped\. This is a new conversation/)
    released.resolve('at last')
    await until(() => made.sent.length === 2)
  })
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

import { AppError, type Inbound } from '@sluice/sdk'
import { assistant, user } from '@sluice/testkit/store-rules/samples'
import { describe, expect, test } from 'vitest'
import { advanceUntil, bench, clock, message, open, settle, setUpDeliveries, states, until } from '../testing/delivery-bench.ts'
import { commandIn } from './commands.ts'

setUpDeliveries()

test.each([
  ['/stop', 'stop'],
  [' /STOP\n', 'stop'],
  ['/status', 'status'],
  ['/help', 'help'],
  ['/mute 8h', 'mute 8h'],
  ['/model  openai:gpt-5 ', 'model openai:gpt-5'],
  ['/stop@other_bot', undefined],
  ['/mute@other_bot 8h', undefined],
  ['/mute 8h\nplease', undefined],
  ['/retry', 'retry'],
  ['/compact', undefined],
  ['/toString', undefined],
  ['/who am I', undefined],
  ['/stop now', undefined],
  ['stop', undefined],
  ['/stopp', undefined],
  ['please /stop', undefined],
  ['/help@', undefined],
  [`/help@${'x'.repeat(200)}`, undefined],
])('%j is the command %s', (text, command) => {
  const found = commandIn(text)
  expect(found && `${found.name} ${found.words}`.trim()).toBe(command)
})

/** A bench whose turns end when they are released or aborted. */
async function slowBench(texts = {}, operators: readonly string[] = []) {
  const released = Promise.withResolvers<void>()
  const aborts = new Map<string, (reason: AppError) => void>()
  const made = await bench({
    texts,
    operators,
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
    await made.receive(message('m1'))
    await until(() => made.turns.length === 1)
    await made.receive(message('c', { text: '/stop' }), message('m2'))
    await until(() => made.turns.length === 2 && made.sent.length > 0)
    expect(made.sent.map(({ text }) => text)).toEqual(['Stopped.'])
    release()
    await until(() => made.sent.length === 2)
    expect(lastText(made)).toBe('re: text of m2')
    await settle()
    expect(await states(made)).toEqual({ inbox: ['done', 'done', 'done'], outbox: ['sent', 'sent'] })
  })

  test('is recognised in the typed words of the sender, where the text has more', async () => {
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
    await made.receive(message('m1'))
    await until(() => made.turns.length === 1)
    await settle()
    await made.receive(message('c', { text: '/stop' }), message('m2'))
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
  expect(lastText(made)).toBe('Agent main has been at work for 0 seconds. Messages that wait: 1.')
  release()
  await until(() => made.sent.length === 5)
})

test('/help is answered in the words of the configuration', async () => {
  const made = await bench({ texts: { help: '/stop hält an' } })
  await made.receive(message('c', { text: '/help' }))
  await until(() => made.sent.length === 1)
  expect(made.sent).toMatchObject([{ text: '/stop hält an', to: { to: '+15550002222' } }])
})

test('/help lists the commands that its sender may use', async () => {
  const made = await bench({ channel: { allow: ['*'] } })
  await made.receive(message('c', { text: '/help' }))
  await settle()
  expect(made.sent.length).toBeGreaterThan(1)
  const help = made.sent.map(({ text }) => text).join('\n')
  expect(help).toMatch(/^\/stop ends the running turn\n/)
  expect(help).toContain('/compact replaces')
  expect(help).not.toContain('/mute')
  await made.receive(message('c2', { text: '/mute' }))
  await settle()
  expect(lastText(made)).toBe('You may not use /mute.')
})

test('/who tells the sender, the standing and the agent', async () => {
  const made = await bench({ operators: ['+15550002222'] })
  await made.receive(message('c1', { text: '/who' }), message('c2', { text: '/who', sender: '+15550003333' }))
  await until(() => made.sent.length === 2)
  expect(made.sent.map(({ text }) => text).toSorted()).toEqual([
    'You are +15550002222 on x, with the standing operator. Agent main answers here.',
    'You are +15550003333 on x, with the standing listed. Agent main answers here.',
  ])
})

test('/usage adds up the turns of this conversation in the last 24 hours', async () => {
  const made = await bench()
  await made.receive(message('old'))
  await until(() => made.sent.length === 1)
  await clock.advance(25 * 3_600_000)
  await made.receive(message('m1'), message('m2'), message('other', { sender: '+15550003333' }))
  await until(() => made.sent.length === 4)
  await made.receive(message('c', { text: '/usage' }))
  await settle()
  expect(
    made.sent
      .slice(4)
      .map(({ text }) => text)
      .join(' '),
  ).toBe('Turns of this conversation in the last 24 hours: 2. Input tokens: 2, output tokens: 2, cost: 0.00 US dollars.')
})

describe('/model', () => {
  const models = ['openai:gpt-5', 'ollama:llama']

  test('tells the model and lets an operator choose another one for the conversation', async () => {
    const made = await bench({ models, operators: ['+15550002222'] })
    const say = async (text: string) => {
      const before = made.sent.length
      await made.receive(message(`c${before}`, { text }))
      await until(() => made.sent.length > before)
      return lastText(made)
    }
    expect(await say('/model')).toBe('Agent main uses openai:gpt-5. Configured: openai:gpt-5, ollama:llama.')
    expect(await say('/model llama')).toBe('This conversation uses ollama:llama from now on.')
    expect(await say('/model')).toContain('uses ollama:llama.')
    expect(await say('/model other')).toBe('No configured model is called other. Configured: openai:gpt-5, ollama:llama.')
    await say('hello')
    expect(made.turns).toMatchObject([{ model: 'ollama:llama' }])
    await made.receive(message('m', { sender: '+15550003333' }))
    await until(() => made.turns.length === 2)
    expect(made.turns[1]).not.toHaveProperty('model')
  })

  test('outside of threads is about each thread without a model of its own', async () => {
    const made = await bench({ models, operators: ['ann'] })
    const say = async (id: string, text: string, thread?: string) => {
      await made.receive(
        message(id, { sender: 'ann', to: { to: 'room', ...(thread !== undefined && { thread }) }, addressed: 'mention', text }),
      )
      await settle()
      return lastText(made)
    }
    await say('c1', '/model llama')
    expect(await say('c2', '/model', 't1')).toContain('uses ollama:llama.')
    await say('m1', 'hello', 't1')
    await say('c3', '/model gpt-5', 't1')
    await say('m2', 'hello', 't1')
    await say('m3', 'hello', 't2')
    expect(made.turns.map(({ model }) => model)).toEqual(['ollama:llama', 'openai:gpt-5', 'ollama:llama'])
  })

  test('refuses the choice of other senders', async () => {
    const made = await bench({ models })
    await made.receive(message('c', { text: '/model llama' }))
    await until(() => made.sent.length === 1)
    expect(lastText(made)).toBe('You may not use /model llama.')
  })
})

describe('/mute', () => {
  test('lets messages of the conversation end without an answer until /unmute', async () => {
    const made = await bench()
    await made.receive(message('c1', { text: '/mute' }))
    await until(() => made.sent.length === 1)
    await made.receive(message('m1'), message('other', { sender: '+15550003333' }))
    await until(() => made.sent.length === 2)
    expect(made.turns.map(({ text }) => text)).toEqual(['text of other'])
    await made.receive(message('c2', { text: '/unmute' }))
    await until(() => made.sent.length === 3)
    await made.receive(message('m2'))
    await until(() => made.sent.length === 4)
    expect(made.turns).toHaveLength(2)
    await settle()
    expect(new Set((await states(made)).inbox)).toEqual(new Set(['done']))
  })

  test('ends by itself after its time', async () => {
    const made = await bench()
    await made.receive(message('c1', { text: '/mute 2h' }))
    await until(() => made.sent.length === 1)
    expect(lastText(made)).toMatch(/^Messages here are not answered until \d{4}-\d\d-\d\d \d\d:\d\d UTC, or until/)
    await made.receive(message('m1'))
    await settle()
    expect(made.turns).toEqual([])
    await clock.advance(2 * 3_600_000)
    await made.receive(message('m2'))
    await until(() => made.turns.length === 1)
  })

  test('of an operator is changed and ended by operators alone', async () => {
    const made = await bench({ operators: ['ann'] })
    const inRoom = (id: string, sender: string, text: string) => message(id, { sender, to: { to: 'room' }, addressed: 'mention', text })
    await made.receive(inRoom('c1', 'ann', '/mute 2h'))
    await settle()
    for (const [id, text] of [
      ['c2', '/unmute'],
      ['c3', '/mute 1m'],
      ['c4', '/mute'],
    ] as const) {
      await made.receive(inRoom(id, 'bob', text))
      await settle()
      expect(lastText(made)).toBe('An operator has muted this conversation. Only an operator changes or ends that.')
    }
    await clock.advance(61_000)
    await made.receive(inRoom('m1', 'bob', 'hello'))
    await settle()
    expect(made.turns).toEqual([])
    // Once it is over, it belongs to no one.
    await clock.advance(2 * 3_600_000)
    await made.receive(inRoom('c5', 'bob', '/mute'))
    await settle()
    expect(lastText(made)).toBe('Messages here are not answered until the command /unmute.')
    await made.receive(inRoom('c6', 'bob', '/unmute'))
    await settle()
    expect(lastText(made)).toBe('Messages here are answered again.')
    await made.receive(inRoom('c7', 'ann', '/mute'), inRoom('c8', 'ann', '/unmute'))
    await settle()
    expect(lastText(made)).toBe('Messages here are answered again.')
  })

  test('outside of threads is about its threads too, and so is /unmute in one', async () => {
    const made = await bench({ operators: ['ann'] })
    const say = async (id: string, sender: string, text: string, thread?: string) => {
      await made.receive(message(id, { sender, to: { to: 'room', ...(thread !== undefined && { thread }) }, addressed: 'mention', text }))
      await settle()
    }
    await say('c1', 'bob', '/mute')
    await say('m1', 'bob', 'in a thread', 't1')
    expect(made.turns).toEqual([])
    await say('m2', 'ann', 'of an operator', 't1')
    await say('c2', 'bob', '/unmute', 't1')
    expect(lastText(made)).toBe('Messages here are answered again.')
    await say('m3', 'bob', 'outside')
    await say('m4', 'bob', 'in another thread', 't2')
    expect(made.turns.map(({ text }) => text)).toEqual(['of an operator', 'outside', 'in another thread'])
    await say('c3', 'ann', '/mute')
    await say('c4', 'bob', '/unmute', 't1')
    expect(lastText(made)).toBe('An operator has muted this conversation. Only an operator changes or ends that.')
    await say('c5', 'ann', '/unmute')
    await say('c6', 'bob', '/mute', 't1')
    await say('m5', 'bob', 'in the muted one', 't1')
    await say('m6', 'bob', 'not in it')
    expect(made.turns.map(({ text }) => text).slice(3)).toEqual(['not in it'])
  })

  test.each(['/mute soon', '/mute 0h'])('asks for a time that is one: %s', async (text) => {
    const made = await bench()
    await made.receive(message('c1', { text }))
    await until(() => made.sent.length === 1)
    expect(lastText(made)).toMatch(/^Write \/mute alone, or with a time/)
  })
})

describe('/retry', () => {
  test('answers the last message again, once for each command', async () => {
    let answers = 0
    const made = await bench({ turn: ({ text }) => `${text} ${++answers}` })
    await made.receive(message('m1'))
    await until(() => made.sent.length === 1)
    await clock.advance(1000)
    for (let repeat = 0; repeat < 2; repeat++) await made.receive(message('c', { text: '/retry' }))
    await until(() => made.sent.length === 3)
    expect(made.sent.map(({ text }) => text).toSorted()).toEqual(['Your last message is answered again.', 'text of m1 1', 'text of m1 2'])
  })

  test('runs once also when a stop comes between the replay and the answer', async () => {
    const store = open()
    let isAway = true
    const under: typeof store.under = (lease) => {
      const owned = store.under(lease)
      const done: typeof owned.inbox.done = (...given) =>
        isAway ? Promise.reject(new AppError('unavailable', 'the disk is full')) : owned.inbox.done(...given)
      return { ...owned, inbox: { ...owned.inbox, done } }
    }
    const made = await bench({ store: { ...store, under } })
    await made.receive(message('m1'))
    await until(() => made.sent.length === 1)
    await clock.advance(1000)
    await made.receive(message('c', { text: '/retry' }))
    await until(() => made.turns.length === 2)
    await settle()
    isAway = false
    await advanceUntil(() => made.sent.length === 3)
    await settle()
    expect(made.turns).toHaveLength(2)
  })

  describe('of a message that its writer has changed since', () => {
    const NOTHING = 'No earlier message of yours can be answered again.'
    const change = (of: string, what: 'edited' | 'deleted', text = ''): Inbound =>
      message(`${what}-${of}-${text}`, { text, changes: { message: of, what } })

    test.each([
      ['deleted', change('m1', 'deleted')],
      ['edited', change('m1', 'edited', 'other words')],
    ])('finds nothing where it was %s', async (_, changed) => {
      const made = await bench()
      for (const each of [message('m1'), changed, message('c', { text: '/retry' })]) {
        await made.receive(each)
        await settle()
      }
      expect(made.turns).toHaveLength(1)
      expect(lastText(made)).toBe(NOTHING)
    })

    test('finds nothing where a piece of it was deleted', async () => {
      const made = await bench({ pacing: { batchMs: 300 } })
      await made.receive(message('m1'), message('m2'))
      await settle()
      await clock.advance(300)
      await until(() => made.sent.length === 1)
      await made.receive(change('m2', 'deleted'))
      await settle()
      await made.receive(message('c', { text: '/retry' }))
      await settle()
      expect(made.turns.map(({ text }) => text)).toEqual(['text of m1\ntext of m2'])
      expect(lastText(made)).toBe(NOTHING)
    })

    test('finds nothing where it was deleted while it waited to be answered again', async () => {
      const long = Promise.withResolvers<string>()
      const made = await bench({ turnsMax: 1, turn: ({ text }) => (text === 'text of long' ? long.promise : `re: ${text}`) })
      await made.receive(message('m1'))
      await until(() => made.sent.length === 1)
      await clock.advance(1000)
      await made.receive(message('long', { sender: 'other', to: { to: 'other' } }))
      await until(() => made.turns.length === 2)
      for (const each of [message('c1', { text: '/retry' }), change('m1', 'deleted'), message('c2', { text: '/retry' })]) {
        await made.receive(each)
        await settle()
      }
      expect(lastText(made)).toBe(NOTHING)
      long.resolve('done')
      await settle()
      expect(made.turns).toHaveLength(2)
    })

    test('answers it again where an edit has kept its words', async () => {
      const made = await bench()
      await made.receive(message('m1'))
      await settle()
      await clock.advance(1000)
      await made.receive(change('m1', 'edited', 'text of m1'))
      await settle()
      await made.receive(message('c', { text: '/retry' }))
      await settle()
      expect(made.turns.map(({ text }) => text)).toEqual(['text of m1', 'text of m1'])
    })
  })

  test('finds nothing in a new conversation, while a turn runs, and of another person', async () => {
    const { made, release } = await slowBench()
    await made.receive(message('c1', { text: '/retry' }))
    await until(() => made.sent.length === 1)
    await made.receive(message('m1'))
    await until(() => made.turns.length === 1)
    await made.receive(message('c2', { text: '/retry' }))
    await until(() => made.sent.length === 2)
    release()
    await until(() => made.sent.length === 3)
    expect(made.sent.slice(0, 2).map(({ text }) => text)).toEqual(Array(2).fill('No earlier message of yours can be answered again.'))
  })
})

describe('outside of the threads of a conversation', () => {
  const BOB = '+15550003333'
  const said = (id: string, thread: string | undefined, text = `text of ${id}`, sender = '+15550002222') =>
    message(id, { sender, text, to: { to: 'room', ...(thread !== undefined && { thread }) }, addressed: 'command' as const })

  test('/status and /stop are about the turn of the sender in a thread, and not about turns of others', async () => {
    const { made, release } = await slowBench()
    await made.receive(said('m1', 'one'), said('m2', 'two', 'hi', BOB))
    await until(() => made.turns.length === 2)
    await made.receive(said('c1', undefined, '/status'))
    await until(() => made.sent.length === 1)
    expect(lastText(made)).toMatch(/has been at work/)
    for (const id of ['c2', 'c3']) {
      await made.receive(said(id, undefined, '/stop'))
      await settle()
    }
    await made.receive(said('c4', 'three', '/stop', BOB))
    await settle()
    expect(made.sent.slice(1).map(({ text }) => text)).toEqual(['Stopped.', 'Nothing is running.', 'Nothing is running.'])
    release()
  })

  test('/stop ends what waits and runs in all threads for the sender, and nothing of others', async () => {
    const { made, release } = await slowBench()
    const written = [said('m1', 'one'), said('m2', 'one'), said('m3', 'two'), said('b1', 'one', 'text of b1', BOB)]
    for (const one of written) await made.receive(one)
    await settle()
    await made.receive(said('c', undefined, '/stop'))
    await settle()
    expect(made.sent.map(({ text }) => text)).toEqual(['Stopped. Messages that waited and are not answered: 1.'])
    release()
    await settle()
    expect(made.turns.map(({ text }) => text.replace('text of ', '')).toSorted()).toEqual(['b1', 'm1', 'm3'])
    expect(made.sent.map(({ text }) => text).slice(1)).toEqual(['re: text of b1'])
  })

  test('/stop ends nothing in threads while something of the sender is outside of them', async () => {
    const { made, release } = await slowBench()
    await made.receive(said('m1', 'one'), said('m2', undefined))
    await settle()
    await made.receive(said('c', undefined, '/stop'))
    await settle()
    release()
    await settle()
    expect(made.sent.map(({ text }) => text).toSorted()).toEqual(['Stopped.', 're: text of m1'])
  })

  test('/new begins a new conversation in that thread', async () => {
    const { made, release } = await slowBench()
    await made.receive(said('m1', 'one'))
    await until(() => made.turns.length === 1)
    const session = made.turns[0]?.session ?? ''
    await made.store.turns.finish({ ...ENDED, id: 'before', sessionId: session, messages: [user('earlier'), assistant('answer')] })
    await made.receive(said('c', undefined, '/new'))
    await settle()
    expect(lastText(made)).toMatch(/^Stopped\. This is a new conversation/)
    expect(await made.store.sessions.conversation(session, 10)).toMatchObject({ summary: { text: '' }, messages: [] })
    release()
  })

  test('/new is about the conversation itself once that has messages', async () => {
    const { made, release } = await slowBench()
    await made.receive(said('m1', 'one'))
    await until(() => made.turns.length === 1)
    const session = (made.turns[0]?.session ?? '').replace('/one/', '/')
    await made.store.turns.finish({ ...ENDED, id: 'before', sessionId: session, messages: [user('earlier'), assistant('answer')] })
    await made.receive(said('c', undefined, '/new'))
    await settle()
    expect(lastText(made)).toMatch(/^This is a new conversation/)
    expect(await made.store.sessions.conversation(session, 10)).toMatchObject({ summary: { text: '' }, messages: [] })
    release()
  })
})

describe('in a shared room', () => {
  const ANN = '+15550002222'
  const BOB = '+15550003333'
  const room = (id: string, sender: string, text = `text of ${id}`) =>
    message(id, { sender, text, to: { to: 'room' }, addressed: 'command' as const })

  test('/new does not end the turn of another person, but for operators', async () => {
    const { made } = await slowBench({}, [ANN])
    await made.receive(room('m1', BOB))
    await until(() => made.turns.length === 1)
    await made.receive(room('c1', '+15550004444', '/new'))
    await settle()
    expect(lastText(made)).toBe('This turn answers another person. That person or an operator can stop it.')
    await made.receive(room('c2', ANN, '/new'))
    await settle()
    expect(lastText(made)).toMatch(/^Stopped\. This is a new conversation/)
  })

  test('/retry and /usage are about the own turns, and an operator sees the usage of all', async () => {
    const made = await bench({ operators: [ANN] })
    for (const [id, sender] of Object.entries({ m1: BOB, m2: ANN, m3: ANN })) {
      await made.receive(room(id, sender))
      await settle()
      await clock.advance(1000)
    }
    await made.receive(room('u1', BOB, '/usage'))
    await settle()
    expect(
      made.sent
        .slice(3)
        .map(({ text }) => text)
        .join(' '),
    ).toContain('hours: 1.')
    await made.receive(room('u2', ANN, '/usage'))
    await settle()
    expect(
      made.sent
        .slice(4)
        .map(({ text }) => text)
        .join(' '),
    ).toContain('hours: 3.')
    await made.receive(room('r1', BOB, '/retry'))
    await settle()
    expect(made.turns.at(-1)?.text).toBe('text of m1')
    await clock.advance(1000)
    await made.receive(room('r2', ANN, '/retry'))
    await settle()
    expect(made.turns.at(-1)?.text).toBe('text of m3')
    await made.receive(room('r3', '+15550004444', '/retry'))
    await settle()
    expect(lastText(made)).toBe('No earlier message of yours can be answered again.')
  })

  test('/usage reads the turns of the sender at once', async () => {
    const store = open()
    let reads = 0
    const counted: Pick<typeof store.turns, 'get' | 'list'> = {
      get(id) {
        reads++
        return store.turns.get(id)
      },
      list(filter) {
        reads++
        return store.turns.list(filter)
      },
    }
    const made = await bench({ store: { ...store, turns: { ...store.turns, ...counted } } })
    for (const id of ['m1', 'm2', 'm3', 'm4', 'm5']) await made.receive(room(id, BOB))
    await settle()
    reads = 0
    await made.receive(room('u', BOB, '/usage'))
    await settle()
    expect(made.sent.map(({ text }) => text).join(' ')).toContain('hours: 5.')
    expect(reads).toBe(1)
  })

  test('/mute of a listed person does not silence an operator, and that of an operator does', async () => {
    const made = await bench({ operators: [ANN] })
    await made.receive(room('c1', BOB, '/mute'))
    await settle()
    await made.receive(room('m1', ANN), room('m2', BOB))
    await settle()
    expect(made.turns.map(({ text }) => text)).toEqual(['text of m1'])
    await made.receive(room('c2', ANN, '/mute'))
    await settle()
    await made.receive(room('m3', ANN))
    await settle()
    expect(made.turns).toHaveLength(1)
  })
})

test('/retry finds nothing from before /new', async () => {
  const made = await bench()
  await made.receive(message('m1'))
  await settle()
  const { session } = made.turns[0] ?? {}
  await made.store.turns.finish({ ...ENDED, id: 'with words', sessionId: session ?? '', messages: [user('earlier')] })
  await made.receive(message('c', { text: '/new' }))
  await settle()
  await clock.advance(1000)
  await made.receive(message('c2', { text: '/retry' }))
  await settle()
  expect(lastText(made)).toBe('No earlier message of yours can be answered again.')
  expect(made.turns).toHaveLength(1)
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
    expect(made.endedCommands).toEqual([session])
    await settle()
    expect(await states(made)).toEqual({ inbox: Array(4).fill('done'), outbox: Array(3).fill('sent') })
  })

  test('of a stranger is refused in a conversation that a room shares, and not in one of the stranger alone', async () => {
    const made = await bench({ channel: { allow: ['*'] } })
    const before = earlier('channel:x/our-number/room/')
    await made.store.turns.finish(before)
    const inRoom = { to: { to: 'room' }, addressed: 'command' } as const
    await made.receive(message('c1', { text: '/new', ...inRoom }))
    await settle()
    expect(lastText(made)).toBe('You may not use /new.')
    expect((await made.store.sessions.conversation(before.sessionId, 10)).messages).toHaveLength(2)
    await made.receive(message('c2', { text: '/help', ...inRoom }))
    await settle()
    expect(made.sent.map(({ text }) => text).join('\n')).not.toContain('/new begins')
    await made.receive(message('c3', { text: '/new' }))
    await settle()
    expect(lastText(made)).toContain('This is a new conversation.')
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

test('/new holds no permit while it waits for a turn that does not end', async () => {
  const released = Promise.withResolvers<string>()
  const made = await bench({ turn: () => released.promise })
  const people = Array.from({ length: 6 }, (_, at) => `+1555000444${at}`)
  for (const sender of people) await made.receive(message(`m${sender}`, { sender }))
  await until(() => made.turns.length === people.length)
  for (const sender of people) await made.receive(message(`n${sender}`, { sender, text: '/new' }))
  await settle()
  await made.receive(message('c', { text: '/status' }))
  await until(() => made.sent.length === 1)
  expect(lastText(made)).toMatch(/^Agent main is ready/)
  released.resolve('at last')
  await until(() => made.sent.length === 1 + 2 * people.length)
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
  await made.receive(message('c', { text: '/status' }))
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

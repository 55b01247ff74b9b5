/** What `/stop` and `/new` touch: only what was written before them, also where they are carried out again; and messages that wait. */
import { AppError, chatSessionKey, type Inbound, ROOMS, roomKey, type Store, shardOfSession } from '@sluice/sdk'
import { afterEach, describe, expect, test } from 'vitest'
import {
  bench,
  clock,
  type DeliveryBench,
  type DeliveryBenchOptions,
  message,
  open,
  running,
  settle,
  setUpDeliveries,
  storeWith,
} from '../testing/delivery-bench.ts'
import { twoOwners } from '../testing/two-owners.ts'

setUpDeliveries()

const ends: (() => void)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

const inRoom = (id: string, sender: string, more: Partial<Inbound> = {}): Inbound =>
  message(id, { sender, to: { to: 'room' }, addressed: 'mention', ...more })

/** A bench whose turns run until they are stopped, or until `finish`. */
async function slow(options: DeliveryBenchOptions = {}) {
  const turns = new Map<string, PromiseWithResolvers<string>>()
  const aborted = new AppError('aborted', 'The turn was stopped')
  const made = await bench({
    operators: ['ann'],
    turn({ delivery, signal, text }) {
      if (text.startsWith('quick')) return `re: ${text}`
      const turn = Promise.withResolvers<string>()
      turns.set(delivery?.turnId ?? '', turn)
      signal?.addEventListener('abort', () => turn.reject(aborted))
      return turn.promise
    },
    abort(id) {
      turns.get(id)?.reject(aborted)
      return turns.delete(id)
    },
    ...options,
  })
  const finish = async (): Promise<void> => {
    for (const { resolve } of turns.values()) resolve('done')
    await settle()
  }
  ends.push(() => {
    for (const { resolve } of turns.values()) resolve('')
  })
  const begun = (): string[] => made.turns.map(({ text }) => text.replaceAll('text of ', ''))
  return { ...made, begun, finish }
}

/** A store whose end of the message with this number fails until `mend`. */
function failing(number: number): { readonly store: Store; mend(): void } {
  let isCut = true
  const store = storeWith(open(), ({ inbox }) => ({
    inbox: {
      ...inbox,
      done: (ended, ...more) =>
        isCut && ended === number ? Promise.reject(new AppError('unavailable', 'the disk is full')) : inbox.done(ended, ...more),
    },
  }))
  const mend = (): void => {
    isCut = false
  }
  return { store, mend }
}

/** Stores messages of Bob, one in each room, whose turns a crash has interrupted. Resolves to their numbers. */
async function interrupted(store: Store, rooms: readonly string[]): Promise<readonly number[]> {
  const numbers = (await store.inbox.keep({
    channel: 'x',
    verdict: 'test',
    raw: null,
    receivedAtMs: clock.nowMs(),
    messages: rooms.map((room) => ({
      message: inRoom(room, 'bob', { to: { to: room } }),
      session: `channel:x/our-number/${room}/`,
    })),
  })) as number[]
  for (const number of numbers) await store.inbox.start(number, `turn ${number}`, 5)
  return numbers
}

const pass = async (ms: number): Promise<void> => {
  for (let left = ms; left > 0; left -= 1000) {
    await clock.advance(Math.min(left, 1000))
    await settle()
  }
}
const texts = ({ sent }: DeliveryBench): string[] => sent.map(({ text }) => text)
const ended = async ({ store }: DeliveryBench): Promise<(readonly [string, string, string | null])[]> =>
  (await store.inbox.list({ limit: 99 })).toReversed().map(({ messageId, state, error }) => [messageId, state, error] as const)

describe('a command that is carried out again', () => {
  test('/stop does not end the turn of a message that was written after it', async () => {
    const { store, mend } = failing(2)
    const made = await slow({ store })
    await made.receive(message('m1'))
    await settle()
    await made.receive(message('c', { text: '/stop' }))
    await settle()
    await made.receive(message('m2'))
    await settle()
    expect(made.begun()).toEqual(['m1', 'm2'])
    mend()
    await pass(30_000)
    await made.finish()
    expect(texts(made).toSorted()).toEqual(['Stopped.', 'done'])
    expect((await ended(made)).map(([id, state]) => [id, state])).toEqual([
      ['m1', 'done'],
      ['c', 'done'],
      ['m2', 'done'],
    ])
  })

  test('/stop says that it has stopped a turn once the store has the end of that', async () => {
    const kept = Promise.withResolvers<void>()
    const store = storeWith(open(), ({ inbox }) => ({
      inbox: {
        ...inbox,
        async done(number, ...more) {
          if (number === 1) await kept.promise
          return inbox.done(number, ...more)
        },
      },
    }))
    const made = await slow({ store })
    await made.receive(message('m1'))
    await settle()
    await made.receive(message('c', { text: '/stop' }))
    await settle()
    expect(texts(made)).toEqual([])
    kept.resolve()
    await settle()
    expect(texts(made)).toEqual(['Stopped.'])
  })

  test('/stop ends a turn also where the daemon stops meanwhile', async () => {
    const turn = Promise.withResolvers<string>()
    const made = await slow({ turn: () => turn.promise, abort: () => true })
    await made.receive(message('m1'))
    await settle()
    await made.receive(message('c', { text: '/stop' }))
    await settle()
    const stopped = running.splice(0)[0]?.stop(0)
    turn.reject(new AppError('aborted', 'The turn was stopped'))
    await settle()
    await stopped
    expect((await ended(made))[0]).toEqual(['m1', 'done', null])
  })

  test('/stop tells once what it ended the first time, and nothing of a turn that ended by itself', async () => {
    const { store, mend } = failing(4)
    const made = await slow({ store })
    for (const id of ['m1', 'm2', 'm3']) await made.receive(inRoom(id, 'bob'))
    await settle()
    await made.receive(inRoom('c', 'bob', { text: '/stop' }))
    await settle()
    expect(texts(made)).toEqual([])
    mend()
    await pass(30_000)
    expect(texts(made)).toEqual(['Stopped. Messages that waited and are not answered: 2.'])
    expect(made.begun()).toEqual(['m1'])
    await made.receive(inRoom('c2', 'bob', { text: '/stop' }))
    await settle()
    expect(texts(made).at(-1)).toBe('Nothing is running.')
  })

  test('/stop outside of threads does not end a later turn in a thread', async () => {
    const { store, mend } = failing(2)
    const made = await slow({ store })
    const inThread = { to: { to: 'room', thread: 't' } }
    await made.receive(inRoom('m1', 'bob', inThread))
    await settle()
    await made.receive(inRoom('c', 'bob', { text: '/stop' }))
    await settle()
    await made.receive(inRoom('m2', 'bob', inThread))
    await pass(6000)
    mend()
    await pass(10_000)
    await made.finish()
    expect(texts(made).toSorted()).toEqual(['Stopped.', 'done'])
  })

  test('/new hides and stops nothing that was written after it', async () => {
    const { store, mend } = failing(2)
    const made = await slow({ store, loopTurns: 0 })
    await made.receive(message('m1', { text: 'quick one' }))
    await settle()
    await made.receive(message('c', { text: '/new' }))
    await settle()
    await made.receive(message('m2', { text: 'quick two' }))
    await settle()
    await made.receive(message('m3'))
    await settle()
    const session = made.turns[0]?.session ?? ''
    const before = (await made.store.sessions.conversation(session, 10)).messages
    expect(before).toHaveLength(1)
    mend()
    await pass(10_000)
    expect((await made.store.sessions.conversation(session, 10)).messages).toEqual(before)
    await made.finish()
    expect(texts(made).at(-1)).toBe('done')
    expect((await made.store.sessions.conversation(session, 10)).messages).toHaveLength(2)
  })
})

describe('in a cluster', () => {
  const session = (thread: string): string =>
    chatSessionKey({ channel: 'x', account: 'our-number', conversation: 'room', ...(thread && { thread }) })

  test.each([
    ['/stop', '', 'Stopped. Messages that waited and are not answered: 1.'],
    ['/stop', 't', 'Stopped. Messages that waited and are not answered: 1.'],
    ['/new', '', 'Stopped. This is a new conversation. The earlier messages are kept, but no longer read.'],
    ['/new', 't', 'Stopped. This is a new conversation. The earlier messages are kept, but no longer read.'],
  ])('%s that another node has received reaches what waits and runs in the thread "%s"', async (text, thread, answer) => {
    const turn = Promise.withResolvers<string>()
    const aborted = new AppError('aborted', 'The turn was stopped')
    const { owner, other } = await twoOwners(shardOfSession(session(thread)), {
      turn({ signal }) {
        signal?.addEventListener('abort', () => turn.reject(aborted))
        return turn.promise
      },
      abort: () => turn.reject(aborted) === undefined,
    })
    ends.push(() => turn.resolve(''))
    const inThread = { to: { to: 'room', ...(thread && { thread }) } }
    await owner.receive(inRoom('m1', 'bob', inThread))
    await settle()
    if (text === '/stop') await owner.receive(inRoom('m2', 'bob', inThread))
    await settle()
    await other.receive(inRoom('c', 'bob', { text }))
    owner.deliveries.wake()
    await settle()
    expect(texts(owner)).toEqual([answer])
    expect(texts(other)).toEqual([])
  })
})

describe('/new', () => {
  const overheard = (id: string): Inbound => inRoom(id, 'bob', { addressed: 'overheard' })
  const edit = (of: string, text: string): Inbound => inRoom(`edit-${text}`, 'ann', { text, changes: { message: of, what: 'edited' } })
  const setRule = (store: Store): Promise<void> =>
    store.keyValue(ROOMS).set(roomKey({ channel: 'x', account: 'our-number', conversation: 'room' }), { respond: 'mention' })

  test('ends what was overheard and what was edited before it, also where it is carried out again, and nothing newer', async () => {
    const { store, mend } = failing(3)
    const made = await slow({ store, loopTurns: 0 })
    await setRule(store)
    const written = [inRoom('1', 'ann', { text: 'quick one' }), edit('1', 'edited'), overheard('o1'), inRoom('c', 'ann', { text: '/new' })]
    for (const one of written) {
      await made.receive(one)
      await settle()
      await clock.advance(10)
    }
    await made.receive(inRoom('2', 'ann', { text: 'quick two' }))
    await settle()
    expect(made.turns.at(-1)?.text).toBe('quick two')
    for (const one of [overheard('o2'), edit('2', 'newer')]) await made.receive(one)
    await settle()
    mend()
    await pass(10_000)
    await made.receive(inRoom('3', 'ann', { text: 'quick three' }))
    await settle()
    const text = made.turns.at(-1)?.text
    expect(text).toContain('text of o2')
    expect(text).toContain('It now reads: "newer"')
    expect(text).not.toMatch(/text of o1|edited"/)
    await made.finish()
    // A message that the platform delivers again is not kept again.
    await made.receive(overheard('o1'), inRoom('4', 'ann', { text: 'quick four' }))
    await settle()
    expect(made.turns.at(-1)?.text).toBe('quick four')
  })
})

describe('/stop', () => {
  test('ends a message that waits for its pieces, and says so', async () => {
    const made = await slow({ pacing: { batchMs: 1500 } })
    await made.receive(inRoom('m1', 'bob', { text: 'delete all' }))
    await settle()
    await made.receive(inRoom('c', 'bob', { text: '/stop' }))
    await pass(3000)
    expect(made.begun()).toEqual([])
    expect(texts(made)).toEqual(['Messages that waited and are not answered: 1.'])
    expect(await ended(made)).toEqual([
      ['m1', 'done', 'stopped by its sender'],
      ['c', 'done', null],
    ])
  })

  test('does not let a message behind it join one before it', async () => {
    const made = await slow({ pacing: { batchMs: 1500 } })
    await made.receive(
      message('m1', { text: 'delete all' }),
      message('c', { text: '/stop' }),
      message('m2', { text: 'rather list' }),
      message('m3', { text: 'them' }),
    )
    await pass(4000)
    expect(made.begun()).toEqual(['rather list\nthem'])
    expect(texts(made)).toEqual(['Messages that waited and are not answered: 1.'])
  })

  test('ends the turn of its sender, and what the sender wrote behind it', async () => {
    const made = await slow()
    for (const id of ['m1', 'm2', 'm3']) await made.receive(message(id))
    await settle()
    await made.receive(message('c', { text: '/stop' }), message('m4'))
    await settle()
    expect(made.begun()).toEqual(['m1', 'm4'])
    expect(texts(made)).toEqual(['Stopped. Messages that waited and are not answered: 2.'])
  })

  test('leaves what other people of a room wrote, unless an operator writes it', async () => {
    const made = await slow()
    await made.receive(inRoom('b1', 'bob'))
    await settle()
    await made.receive(inRoom('a1', 'ann'), inRoom('c1', 'cleo'), inRoom('b2', 'bob'), inRoom('c2', 'cleo'))
    await settle()
    await made.receive(inRoom('s1', 'cleo', { text: '/stop' }))
    await settle()
    expect(texts(made)).toEqual(['Messages that waited and are not answered: 2.'])
    await made.receive(inRoom('s2', 'cleo', { text: '/stop' }))
    await settle()
    expect(texts(made).at(-1)).toBe('This turn answers another person. That person or an operator can stop it.')
    await made.receive(inRoom('s3', 'ann', { text: '/stop' }))
    await settle()
    expect(texts(made).at(-1)).toBe('Stopped. Messages that waited and are not answered: 2.')
    expect(made.begun()).toEqual(['b1'])
    expect((await ended(made)).filter(([, , error]) => error !== null)).toEqual([
      ['a1', 'done', 'stopped by its sender'],
      ['c1', 'done', 'stopped by its sender'],
      ['b2', 'done', 'stopped by operator x:ann'],
      ['c2', 'done', 'stopped by its sender'],
    ])
  })

  test('reaches a message that waits for the limit of its person', async () => {
    const limitsOf: DeliveryBenchOptions['limitsOf'] = ({ client }) =>
      client.endsWith('/eve') ? [{ key: client, turnsPerHour: 0, turnsInFlight: 1, usdPerDay: 0 }] : []
    const made = await slow({ limitsOf })
    await made.receive(message('d', { sender: 'eve', addressed: 'direct' }))
    await settle()
    await made.receive(inRoom('e1', 'eve'))
    await pass(2000)
    await made.receive(inRoom('s', 'ann', { text: '/stop' }))
    await settle()
    expect(texts(made)).toEqual(['Messages that waited and are not answered: 1.'])
    await made.finish()
    await pass(5000)
    expect(made.begun()).toEqual(['d'])
  })

  test('ends a message that a crash interrupted and that waits to go on', async () => {
    const store = open()
    const [, second = 0] = await interrupted(store, ['one', 'two'])
    const made = await slow({ store, turnsMax: 1 })
    await settle()
    await made.receive(inRoom('s1', 'bob', { to: { to: 'two' }, text: '/stop' }))
    await settle()
    expect(texts(made)).toEqual(['Stopped.'])
    await made.finish()
    expect(made.begun()).toEqual(['one'])
    expect(await store.inbox.get(second)).toMatchObject({ state: 'done', error: 'stopped by its sender' })
    expect(await store.turns.get(`turn ${second}`)).toMatchObject({ status: 'aborted' })
  })

  test.each([
    ['for the first time', 'Messages that waited and are not answered: 1.'],
    ['again after a crash', 'Stopped.'],
  ])('ends a message whose attempt is about to begin its turn %s', async (when, answer) => {
    const looking = Promise.withResolvers<void>()
    let isHeld = true
    const store = storeWith(open(), ({ admissions }) => ({
      admissions: {
        ...admissions,
        async loopState(...given) {
          if (isHeld) await looking.promise
          return admissions.loopState(...given)
        },
      },
    }))
    const isAgain = when !== 'for the first time'
    const [number = 0] = isAgain ? await interrupted(store, ['room']) : [1]
    const made = await slow({ store })
    if (!isAgain) await made.receive(inRoom('m1', 'ann'))
    await settle()
    await made.receive(inRoom('c', isAgain ? 'bob' : 'ann', { text: '/stop' }))
    await settle()
    isHeld = false
    looking.resolve()
    await settle()
    expect(made.begun()).toEqual([])
    expect(texts(made)).toEqual([answer])
    expect(await store.inbox.get(number)).toMatchObject({ state: 'done', error: 'stopped by its sender' })
  })

  test.each([
    ['/stop', 'Stopped.', 'stopped by its sender'],
    ['/new', 'Stopped. This is a new conversation. The earlier messages are kept, but no longer read.', null],
  ])('ends a turn whose files are fetched: %s', async (text, answer, reason) => {
    let fetching: AbortSignal | undefined
    const made = await slow({
      channel: {
        fetchMedia: (_file, { signal }) => {
          fetching = signal
          return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
        },
      },
    })
    await made.receive(message('m1', { attachments: [{ kind: 'audio', name: 'v.ogg', source: { url: 'http://127.0.0.1/v' } }] }))
    await settle()
    expect(fetching?.aborted).toBe(false)
    await made.receive(message('c', { text }))
    await settle()
    expect(fetching?.aborted).toBe(true)
    expect(texts(made)).toEqual([answer])
    expect(made.begun()).toEqual([])
    expect(await ended(made)).toEqual([
      ['m1', 'done', reason],
      ['c', 'done', null],
    ])
  })

  test('ends a turn whose draft is sent', async () => {
    const sending = Promise.withResolvers<{ readonly id: string }>()
    let isFirst = true
    const made = await slow({
      channel: { draftEveryMs: 1000, update: async () => {} },
      send() {
        const sent = isFirst ? sending.promise : Promise.resolve({ id: 'later' })
        isFirst = false
        return sent
      },
    })
    await made.receive(message('m1'))
    await settle()
    await made.receive(message('c', { text: '/stop' }))
    await settle()
    sending.resolve({ id: 'draft' })
    await settle()
    expect(texts(made)).toContain('Stopped.')
    expect(made.begun()).toEqual([])
  })

  test('replaces the draft of a message that waits to be tried again', async () => {
    const shown: unknown[] = []
    const made = await slow({
      channel: { draftEveryMs: 1000, update: async (_, sent, { text }) => void shown.push([sent.id, text]) },
      turn() {
        throw new AppError('upstream', 'the model is away', { isPassing: true, retryAfterSecs: 30 })
      },
    })
    await made.receive(message('m1'))
    await settle()
    const draft = (await made.store.inbox.get(1))?.draft
    expect(draft).toBeDefined()
    await made.receive(message('c', { text: '/stop' }))
    await settle()
    expect(shown).toEqual([[draft, 'Stopped.']])
    await clock.advance(120_000)
    await settle()
    expect([made.begun(), shown.length]).toEqual([['m1'], 1])
  })
})

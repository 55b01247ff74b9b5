import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { queryObjects } from 'node:v8'
import { type Agent, newTrace, type TurnRequest } from '@sluice/agent'
import { deliverySection } from '@sluice/config'
import { callProvider, LaneQueue } from '@sluice/kit'
import { AppError, type Channel, type ClientId, type Clock, type Inbound, type NewReply, type Outbound, type Store } from '@sluice/sdk'
import { openStore } from '@sluice/store'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Deliveries, startDeliveries } from './deliveries.ts'
import type { DeliveryOptions } from './delivery-options.ts'

let folder: string
let clock: TestClock
let host: ReturnType<typeof testHost>
const stores: Store[] = []
const running: Deliveries[] = []
const QUIET_TICKS = 60
/** Bounds the wait for a store that fails and never ends a write. */
const TICKS_MAX = 20_000

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'deliveries-'))
  clock = testClock()
  host = testHost({ clock })
})
afterEach(async () => {
  for (const deliveries of running.splice(0)) await deliveries.stop(0)
  for (const store of stores.splice(0)) await store.close()
  rmSync(folder, { recursive: true })
})

const open = (): Store => {
  const store = openStore({ file: join(folder, 'sluice.db'), clock, log: host.log })
  stores.push(store)
  return store
}

const message = (id: string, more: Partial<Inbound> = {}): Inbound => ({
  id,
  account: 'our-number',
  sender: '+15550002222',
  to: { to: '+15550002222', replyTo: id },
  text: `text of ${id}`,
  ...more,
})

interface Bench {
  readonly store: Store
  readonly deliveries: Deliveries
  readonly turns: TurnRequest[]
  readonly sent: (Outbound & { readonly to: unknown })[]
  receive(...messages: Inbound[]): ReturnType<Deliveries['receive']>
}

interface Options {
  readonly store?: Store
  readonly channel?: Partial<Channel>
  readonly send?: Channel['send']
  readonly turn?: (request: TurnRequest) => string | Promise<string>
  readonly config?: object
  readonly turnsMax?: number
  readonly clock?: Clock
  /** The paths that procedures have triggers for; an array that a test may change. */
  readonly triggers?: readonly string[]
}

async function bench(options: Options = {}): Promise<Bench> {
  const store = options.store ?? open()
  const turns: TurnRequest[] = []
  const sent: Bench['sent'] = []
  const channel: Channel = {
    name: 'x',
    allow: ['*'],
    limits: { text: 100, unit: 'utf16' },
    async send(to, outbound, signal) {
      const answer = await options.send?.(to, outbound, signal)
      sent.push({ to, ...outbound })
      return answer ?? { id: `sent-${sent.length}` }
    },
    ...options.channel,
  }
  const deps: DeliveryOptions = {
    store,
    events: host.events,
    approvals: {
      matchReply: () => undefined,
      handleReply: () => Promise.reject(new Error('no reply to an approval comes here')),
      current: async (outbound) => outbound,
    },
    changedElsewhere: async () => {},
    clock: options.clock ?? clock,
    log: host.log,
    features: {
      onChange: () => () => {},
      channels: () => [channel],
      config: () => v.parse(deliverySection.schema, options.config ?? {}),
      workspace: () => host.workspace,
      transcribe: () => undefined,
      procedures: () =>
        options.triggers && {
          matches: (_source, path) => options.triggers?.includes(path) === true,
          async fire(_event, also) {
            if (also?.inbox !== undefined) await store.inbox.done(also.inbox, clock.nowMs())
            return [{ sop: 'procedure', status: 'started', runId: 'run' }]
          },
        },
    },
    turns: {
      agent: testAgent(store, turns, options.turn ?? (({ text }) => `re: ${text}`)),
      lanes: new LaneQueue({ clock: options.clock ?? clock, permits: () => options.turnsMax ?? 8 }),
      clients: { ofCaller: (caller) => caller as ClientId },
    },
    telemetry: { observe: () => {}, traces: () => false, within: (_, work) => work() },
    scrub: (text) => text.replaceAll('our-token', '[redacted]'),
  }
  const deliveries = await startDeliveries(deps)
  running.push(deliveries)
  return {
    store,
    deliveries,
    turns,
    sent,
    receive: (...messages) =>
      deliveries.receive(channel, { raw: Buffer.from('{}'), verified: { by: 'test' }, receivedAtMs: clock.nowMs(), messages }),
  }
}

/** Ends turns as the real agent does: in one commit with the replies. */
const testAgent = (store: Store, turns: TurnRequest[], answer: (request: TurnRequest) => string | Promise<string>): Pick<Agent, 'run'> => ({
  async run(request) {
    turns.push(request)
    const text = await answer(request)
    const { delivery } = request
    if (!delivery) throw new Error('no delivery')
    const usage = { inputTokens: 1, outputTokens: 1, costUsd: 0 }
    const replies = await store.turns.finish({
      id: delivery.turnId,
      sessionId: request.session,
      source: request.source,
      status: 'done',
      input: request.text,
      response: text,
      model: 'm',
      error: null,
      ...usage,
      attempts: delivery.attempts,
      createdAtMs: clock.nowMs(),
      endedAtMs: clock.nowMs(),
      messages: [],
      delivery: { inbox: delivery.inbox, replies: delivery.reply(text, newTrace()) },
    })
    return { id: delivery.turnId, text, model: 'm', usage, replies }
  },
})

/** Waits until all work is done that the test's clock allows. */
const settle = async () => {
  // A commit may wait for a moment of real time, which is any number of ticks.
  for (let [tick, quiet] = [0, 0]; tick < TICKS_MAX && quiet < QUIET_TICKS; tick++) {
    await new Promise((resolve) => setImmediate(resolve))
    quiet = stores.some((store) => store.pending() > 0) ? 0 : quiet + 1
  }
}
const states = async ({ store }: Bench) => ({
  inbox: (await store.inbox.list({ limit: 100 })).map(({ state }) => state),
  outbox: (await store.outbox.list({ limit: 100 })).map(({ state }) => state),
})
/** Advances the clock until the condition is true, at most by 20 minutes, which is more than all delays together. */
const advanceUntil = async (isTrue: () => boolean) => {
  for (let minute = 0; minute < 20 && !isTrue(); minute++) {
    await clock.advance(60_000)
    await settle()
  }
  expect(isTrue()).toBe(true)
}
const until = async (isTrue: () => boolean) => {
  for (let turn = 0; turn < 20_000 && !isTrue(); turn++) await new Promise((resolve) => setImmediate(resolve))
  expect(isTrue()).toBe(true)
}

/** Waits until the newest row of the inbox or outbox has these members. */
const untilRow = async (box: { list(filter: { limit: number }): Promise<readonly object[]> }, wanted: object) => {
  let row: object | undefined
  for (let turn = 0; turn < 20_000; turn++) {
    row = (await box.list({ limit: 1 }))[0]
    if (Object.entries(wanted).every(([key, value]) => row && Reflect.get(row, key) === value)) return
  }
  expect(row).toMatchObject(wanted)
}

describe('a message', () => {
  test('runs one turn in its own session and is answered once', async () => {
    const made = await bench()
    const sender = `channel:x/${encodeURIComponent(message('m1').account)}/%2B15550002222`
    expect(await made.receive(message('m1'))).toEqual({ kept: 1, duplicate: 0, denied: 0 })
    await settle()
    expect(made.turns).toMatchObject([{ source: 'x', owner: 'channel:x', text: 'text of m1', caller: sender, client: sender }])
    expect(made.sent).toMatchObject([{ text: 're: text of m1', to: { to: '+15550002222', replyTo: 'm1' } }])
    expect(await states(made)).toEqual({ inbox: ['done'], outbox: ['sent'] })
    expect(made.deliveries.load()).toEqual({ messages: 0, replies: 0 })
  })

  test('runs one turn under 100 concurrent copies, and none when it is repeated', async () => {
    const made = await bench()
    const receptions = await Promise.all(Array.from({ length: 100 }, () => made.receive(message('m1'))))
    expect(receptions.reduce((sum, { kept }) => sum + kept, 0)).toBe(1)
    await settle()
    expect(await made.receive(message('m1'))).toEqual({ kept: 0, duplicate: 1, denied: 0 })
    await settle()
    expect(made.turns).toHaveLength(1)
  })

  describe('of a path that procedures have triggers for', () => {
    const webhook: NonNullable<Channel['webhook']> = {
      path: '/x',
      verify: () => ({ by: 'test' }),
      parse: () => [],
      sample: () => ({ headers: {}, body: '' }),
    }
    /** A message that waits behind another one, and the paths with triggers when it arrives. */
    const waiting = async (triggers: string[]) => {
      const gate = Promise.withResolvers<string>()
      const made = await bench({ triggers, channel: { webhook }, turn: () => gate.promise })
      const [path, ...others] = triggers.splice(0)
      await made.receive(message('m0'))
      await settle()
      if (path !== undefined) triggers.push(path, ...others)
      await made.receive(message('m1'))
      const finish = async () => {
        gate.resolve('done')
        await settle()
      }
      return { ...made, finish }
    }

    test('starts them instead of a turn', async () => {
      const { turns, finish, store } = await waiting(['/x'])
      expect((await store.inbox.waiting({ after: 0, limit: 9 })).map(({ kind }) => kind)).toEqual(['turn', 'procedure_event'])
      await finish()
      expect(turns.map(({ text }) => text)).toEqual(['text of m0'])
    })

    test('is a turn if the procedure is gone when the message is worked on', async () => {
      const triggers = ['/x']
      const { turns, finish } = await waiting(triggers)
      triggers.pop()
      await finish()
      expect(turns.map(({ text }) => text)).toEqual(['text of m0', 'text of m1'])
    })

    test('stays a turn if the procedure is loaded after the message arrived', async () => {
      const triggers: string[] = []
      const { turns, finish, store, deliveries } = await waiting(triggers)
      triggers.push('/x')
      await finish()
      expect(turns.map(({ text }) => text)).toEqual(['text of m0', 'text of m1'])
      // A replay decides again.
      await store.inbox.replay(2)
      deliveries.wake()
      await settle()
      expect(turns).toHaveLength(2)
      expect(await store.inbox.get(2)).toMatchObject({ state: 'done' })
    })
  })

  test('is a duplicate after a restart too', async () => {
    const first = await bench()
    await first.receive(message('m1'))
    await settle()
    await first.deliveries.stop(0)
    await first.store.close()
    const second = await bench()
    expect(await second.receive(message('m1'))).toMatchObject({ kept: 0, duplicate: 1 })
    await settle()
    expect(second.turns).toEqual([])
  })

  test('with the same id on another account is another message', async () => {
    const made = await bench()
    await made.receive(message('m1'), message('m1', { account: 'other' }))
    await settle()
    expect(made.turns).toHaveLength(2)
  })

  test('waits for the message before it in its session, not for other sessions', async () => {
    const gate = Promise.withResolvers<void>()
    const made = await bench({
      async turn({ text }) {
        if (text === 'text of m1') await gate.promise
        return text
      },
    })
    await made.receive(message('m1'), message('m2'), message('m3', { sender: '+15550003333' }))
    await settle()
    expect(made.turns.map(({ text }) => text)).toEqual(['text of m1', 'text of m3'])
    gate.resolve()
    await settle()
    expect(made.turns.map(({ text }) => text)).toEqual(['text of m1', 'text of m3', 'text of m2'])
  })

  test('supersedes the turn it waits for', async () => {
    const gate = Promise.withResolvers<void>()
    const made = await bench({
      async turn({ text }) {
        if (text === 'text of m1') await gate.promise
        return text
      },
    })
    await made.receive(message('m1'))
    await settle()
    expect(made.turns[0]?.superseded?.aborted).toBe(false)
    await made.receive(message('m2'))
    expect(made.turns[0]?.superseded?.aborted).toBe(true)
    gate.resolve()
    await settle()
    expect(made.turns[1]?.superseded?.aborted).toBe(false)
  })

  test('is retried with backoff, delays only its session, and is dead after 5 attempts', async () => {
    const made = await bench({
      turn({ text }) {
        if (text === 'text of poison') throw new AppError('upstream', 'the model fell over')
        return text
      },
    })
    await made.receive(message('poison'), message('behind'), message('beside', { sender: '+15550003333' }))
    await settle()
    expect(made.turns.map(({ text }) => text)).toEqual(['text of poison', 'text of beside'])
    const first = await made.store.inbox.list({ limit: 1, state: 'pending' })
    expect(first).toMatchObject([{ messageId: 'behind' }])
    await advanceUntil(() => made.turns.some(({ text }) => text === 'text of behind'))
    expect(made.turns.filter(({ text }) => text === 'text of poison')).toHaveLength(5)
    expect(made.turns.at(-1)?.text).toBe('text of behind')
    expect(await made.store.inbox.counts()).toEqual({ pending: 0, running: 0, dead: 1 })
    const [dead] = await made.store.inbox.list({ limit: 1, state: 'dead' })
    expect(dead).toMatchObject({ messageId: 'poison', attempts: 5, error: 'the model fell over' })
    expect(host.emitted).toContainEqual(expect.objectContaining({ type: 'delivery', direction: 'inbound', state: 'dead' }))
  })

  test('outlives an outage of the model and runs soon after the model is back', async () => {
    let isAway = true
    const made = await bench({
      turn({ text }) {
        if (isAway) throw new AppError('upstream', 'the model is overloaded', { isPassing: true })
        return text
      },
    })
    await made.receive(message('m1'))
    await settle()
    await advanceUntil(() => made.turns.length > 15)
    await untilRow(made.store.inbox, { state: 'pending', attempts: 0, error: 'the model is overloaded' })
    isAway = false
    await clock.advance(30_000)
    await until(() => made.sent.length === 1)
    expect(await states(made)).toMatchObject({ inbox: ['done'] })
  })

  test('is dead when the model was away for max_age_hours', async () => {
    const made = await bench({
      config: { max_age_hours: 1 },
      turn() {
        throw new AppError('upstream', 'the model is overloaded', { isPassing: true })
      },
    })
    await made.receive(message('m1'))
    await clock.advance(60 * 60_000)
    await advanceUntil(() => made.deliveries.load().messages === 0)
    expect(await states(made)).toEqual({ inbox: ['dead'], outbox: [] })
  })

  test('is dead after max_attempts starts that were all interrupted', async () => {
    const store = open()
    const [number] = (await store.inbox.keep({
      channel: 'x',
      verdict: 'test',
      raw: Buffer.from('{}'),
      receivedAtMs: clock.nowMs(),
      messages: [{ message: message('m1'), session: 's' }],
    })) as number[]
    for (let start = 0; start < 5; start++) await store.inbox.start(number ?? 0, 't1', 5)
    const made = await bench({ store })
    await settle()
    expect(made.turns).toEqual([])
    expect(await states(made)).toEqual({ inbox: ['dead'], outbox: [] })
    expect(await store.inbox.get(number ?? 0)).toMatchObject({ attempts: 5, error: expect.stringContaining('started 5 times') })
  })

  test('that crashes the daemon is the only one that is given up', async () => {
    const store = open()
    const messages = Array.from({ length: 20 }, (_, index) => ({ message: message(`m${index}`), session: `session ${index}` }))
    await store.inbox.keep({ channel: 'x', verdict: 'test', raw: Buffer.from('{}'), receivedAtMs: clock.nowMs(), messages })
    for (let life = 1; life <= 5; life++) {
      const beside = open()
      let isDead = false
      // A killed daemon: after the turn of the poison has begun, no call reaches the store.
      const mortal = <Port extends object>(port: Port): Port =>
        new Proxy(port, {
          get(target, name) {
            const member: unknown = Reflect.get(target, name)
            if (typeof member !== 'function') return typeof member === 'object' && member !== null ? mortal(member) : member
            return (...values: unknown[]) => (isDead ? new Promise(() => {}) : Reflect.apply(member, target, values))
          },
        })
      const made = await bench({
        store: mortal(beside),
        async turn({ text }) {
          await settle()
          if (text === 'text of m0') isDead = true
          return text
        },
      })
      await settle()
      await settle()
      running.splice(running.indexOf(made.deliveries), 1)
    }
    const last = await bench({ store: open() })
    await until(() => last.deliveries.load().messages === 0)
    const rows = await store.inbox.list({ limit: 100 })
    expect(rows.filter(({ state }) => state === 'dead').map(({ messageId }) => messageId)).toEqual(['m0'])
    expect(rows.filter(({ state }) => state === 'done')).toHaveLength(19)
  })

  test('over max_pending is refused with Retry-After, for its account only', async () => {
    const gate = Promise.withResolvers<void>()
    const made = await bench({
      config: { max_pending: 2 },
      async turn({ text }) {
        await gate.promise
        return text
      },
    })
    await made.receive(message('m1'))
    await expect(made.receive(message('m2'), message('m3'))).rejects.toMatchObject({ code: 'unavailable', retryAfterSecs: 30 })
    expect(await made.store.inbox.list({ limit: 10 })).toHaveLength(1)
    await made.receive(message('m2'))
    await expect(made.receive(message('m3'))).rejects.toMatchObject({ code: 'unavailable' })
    expect(await made.receive(message('m3', { account: 'other' }))).toMatchObject({ kept: 1 })
    expect(await made.receive(message('m1'), message('m2'))).toEqual({ kept: 0, duplicate: 2, denied: 0 })
    gate.resolve()
    await settle()
    expect(await made.receive(message('m3'))).toMatchObject({ kept: 1 })
  })

  test('is refused when turns of its account have waited longer than max_queue_secs', async () => {
    const gate = Promise.withResolvers<void>()
    const made = await bench({
      config: { max_queue_secs: 60 },
      turnsMax: 1,
      async turn({ text }) {
        await gate.promise
        return text
      },
    })
    await made.receive(message('runs'), message('ready', { sender: 's2' }), message('behind'))
    await settle()
    await clock.advance(60_000)
    expect(await made.receive(message('m1', { sender: 's3' }))).toMatchObject({ kept: 1 })
    await clock.advance(1)
    expect(made.deliveries.ages()).toEqual({ messageSecs: 60.001, replySecs: 0 })
    await expect(made.receive(message('m2'))).rejects.toMatchObject({ code: 'unavailable', retryAfterSecs: 30 })
    expect(await made.receive(message('ready', { sender: 's2' }))).toMatchObject({ duplicate: 1 })
    expect(await made.receive(message('m2', { account: 'other' }))).toMatchObject({ kept: 1 })
    gate.resolve()
    await until(() => made.turns.length === 5)
    expect(await made.receive(message('m2'))).toMatchObject({ kept: 1 })
  })

  test('is not refused because its session or replies of its account wait', async () => {
    const gate = Promise.withResolvers<void>()
    const made = await bench({
      config: { max_queue_secs: 60 },
      async turn({ text }) {
        if (text === 'text of slow') await gate.promise
        return text
      },
      async send() {
        throw new AppError('unavailable', 'nobody there')
      },
    })
    await made.receive(message('slow'), message('behind'), message('answered', { sender: 's2' }))
    await until(() => made.deliveries.load().replies === 1)
    await clock.advance(90_000)
    expect(made.deliveries.ages()).toEqual({ messageSecs: 90, replySecs: 90 })
    expect(await made.receive(message('m1'))).toMatchObject({ kept: 1 })
    gate.resolve()
    await until(() => made.turns.length === 4)
  })

  test('of a request with more messages than max_pending is kept when none waits', async () => {
    const made = await bench({ config: { max_pending: 2 } })
    expect(await made.receive(message('m1'), message('m2'), message('m3'))).toMatchObject({ kept: 3 })
  })

  test('from a sender that is not allowed is dropped without an answer', async () => {
    const made = await bench({ channel: { allow: ['+1 555 000 2222'], normalise: (entry) => entry.replaceAll(' ', '') } })
    expect(await made.receive(message('s1', { sender: '+1999' }), message('m1'))).toEqual({ kept: 1, duplicate: 0, denied: 1 })
    await settle()
    expect(made.sent.map(({ text }) => text)).toEqual(['re: text of m1'])
    expect(await made.store.inbox.list({ limit: 10 })).toHaveLength(1)
  })

  test('with half a surrogate pair is kept once', async () => {
    const made = await bench()
    const odd = message('m\ud800', { text: 'a\udc00b', sender: '\ud800' })
    expect(await made.receive(odd)).toMatchObject({ kept: 1 })
    expect(await made.receive(odd)).toMatchObject({ duplicate: 1 })
    await settle()
    expect(made.turns).toMatchObject([{ text: 'a\ufffdb' }])
  })

  test('resumes after a stop interrupted its turn, and the interrupted attempt does not count', async () => {
    const cut = Promise.withResolvers<never>()
    const first = await bench({ turn: () => cut.promise })
    await first.receive(message('m1'))
    await settle()
    expect(first.turns).toHaveLength(1)
    const stopped = first.deliveries.stop(0)
    cut.reject(new AppError('unavailable', 'stopping'))
    await stopped
    expect(await first.store.inbox.list({ limit: 1 })).toMatchObject([{ state: 'pending', attempts: 0 }])
    const second = await bench({ store: first.store })
    await settle()
    expect(second.turns).toMatchObject([{ text: 'text of m1', delivery: { attempts: 1 } }])
  })

  test('runs in a new turn within a second after another process replayed it', async () => {
    const made = await bench()
    await made.receive(message('m1'))
    await settle()
    const beside = open()
    const [row] = await beside.inbox.list({ limit: 1 })
    expect(await beside.inbox.replay(row?.number ?? 0)).toBe(true)
    await clock.advance(1000)
    await settle()
    expect(made.turns).toHaveLength(2)
    expect(made.turns[1]?.delivery?.turnId).not.toBe(made.turns[0]?.delivery?.turnId)
  })

  test('that another process replayed runs although the store fails at first', async () => {
    const store = open()
    let failures = 0
    const waiting: Store['inbox']['waiting'] = async (options) => {
      if (failures-- > 0) throw new AppError('unavailable', 'the disk does not answer')
      return store.inbox.waiting(options)
    }
    const made = await bench({ store: { ...store, inbox: { ...store.inbox, waiting } } })
    await made.receive(message('m1'))
    await settle()
    await clock.advance(1000)
    failures = 1
    await open().inbox.replay(1)
    await clock.advance(1000)
    await settle()
    expect(made.turns).toHaveLength(1)
    await clock.advance(1000)
    await settle()
    expect(made.turns).toHaveLength(2)
  })

  test('that this process replayed runs after wake', async () => {
    const made = await bench()
    await made.receive(message('m1'))
    await settle()
    const [row] = await made.store.inbox.list({ limit: 1 })
    await made.store.inbox.replay(row?.number ?? 0)
    made.deliveries.wake()
    await settle()
    expect(made.turns).toHaveLength(2)
  })

  test('is resumed in order at the normal concurrency, also with 10,000 others', async () => {
    const store = open()
    for (let batch = 0; batch < 10; batch++) {
      const messages = Array.from({ length: 1000 }, (_, index) => {
        const number = batch * 1000 + index
        return { message: message(`m${number}`), session: `session ${number % 100}` }
      })
      await store.inbox.keep({ channel: 'x', verdict: 'test', raw: Buffer.from('{}'), receivedAtMs: clock.nowMs(), messages })
    }
    let atOnce = 0
    let most = 0
    const gate = Promise.withResolvers<void>()
    const made = await bench({
      store,
      async turn({ text }) {
        most = Math.max(most, ++atOnce)
        await gate.promise
        atOnce -= 1
        return text
      },
    })
    await settle()
    expect(made.deliveries.load().messages).toBe(10_000)
    expect(made.turns).toHaveLength(8)
    gate.resolve()
    await until(() => made.turns.length > 500)
    expect(most).toBe(8)
    const ofOneSession = made.turns
      .filter(({ session }) => session === 'session 7')
      .map(({ text }) => Number(text.slice('text of m'.length)))
    expect(ofOneSession.length).toBeGreaterThan(1)
    expect(ofOneSession).toEqual(ofOneSession.toSorted((a, b) => a - b))
  })
})

describe('a reply', () => {
  const answered = async (options: Options) => {
    const made = await bench(options)
    await made.receive(message('m1'))
    await settle()
    return made
  }

  test('that is too long is sent in parts, in order, and only the first quotes', async () => {
    const words = Array.from({ length: 40 }, (_, index) => `word${index}`).join(' ')
    const made = await answered({ turn: () => words })
    await settle()
    expect(made.sent.map(({ text }) => text).join(' ')).toBe(words)
    expect(made.sent.length).toBeGreaterThan(2)
    expect(made.sent.map(({ to }) => (to as { replyTo?: string }).replyTo)).toEqual(['m1', ...made.sent.slice(1).map(() => undefined)])
  })

  test('without text is not sent, and the message is done', async () => {
    const made = await answered({ turn: () => '  ' })
    expect(made.sent).toEqual([])
    expect(await states(made)).toEqual({ inbox: ['done'], outbox: [] })
  })

  test('that was not sent is retried after Retry-After with the same client id', async () => {
    let attempts = 0
    const ids: string[] = []
    const made = await answered({
      async send(_to, { clientId }) {
        ids.push(clientId)
        if (++attempts === 1) throw new AppError('rate_limited', 'too fast', { retryAfterSecs: 60 })
        return { id: 'p1' }
      },
    })
    expect(await states(made)).toEqual({ inbox: ['done'], outbox: ['failed'] })
    await clock.advance(59_000)
    await settle()
    expect(attempts).toBe(1)
    await clock.advance(2000)
    await settle()
    expect(attempts).toBe(2)
    expect(ids[0]).toBe(ids[1])
    expect(await made.store.outbox.list({ limit: 1 })).toMatchObject([{ state: 'sent', providerId: 'p1', attempts: 1 }])
  })

  test('that may have been sent is ambiguous and not retried', async () => {
    let attempts = 0
    const made = await answered({
      async send() {
        attempts += 1
        throw new AppError('upstream', 'the connection broke')
      },
    })
    await clock.advance(20 * 60_000)
    await settle()
    expect(attempts).toBe(1)
    expect(await made.store.outbox.list({ limit: 1 })).toMatchObject([{ state: 'ambiguous', error: 'the connection broke' }])
  })

  test('that may have been sent is retried where the platform drops repeats', async () => {
    let attempts = 0
    const made = await answered({
      channel: { limits: { text: 100, unit: 'utf16', dedupesClientIds: true } },
      async send() {
        if (++attempts < 3) throw new AppError('upstream_timeout', 'no answer')
        return { id: 'p' }
      },
    })
    await advanceUntil(() => attempts === 3)
    expect(await states(made)).toMatchObject({ outbox: ['sent'] })
  })

  test('whose turn ends during a stop waits for the next start', async () => {
    const gate = Promise.withResolvers<string>()
    const untilCutOff: Channel['send'] = (_to, _message, signal) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(new AppError('aborted', 'cut off'))))
    const first = await bench({ turn: () => gate.promise, send: untilCutOff })
    await first.receive(message('m1'))
    await settle()
    const stopped = first.deliveries.stop(10_000)
    gate.resolve('an answer')
    await stopped
    await settle()
    expect(await states(first)).toEqual({ inbox: ['done'], outbox: ['queued'] })
    const second = await bench({ store: first.store })
    await settle()
    expect(second.sent).toMatchObject([{ text: 'an answer' }])
  })

  test('is stored in the commit that ends its turn', async () => {
    const store = open()
    const found: unknown[] = []
    const turns: Store['turns'] = {
      ...store.turns,
      async finish(end) {
        const numbers = await store.turns.finish(end)
        found.push(await store.outbox.list({ limit: 10 }))
        return numbers
      },
    }
    await answered({ store: { ...store, turns } })
    expect(found).toMatchObject([[{ text: 're: text of m1' }]])
  })

  test('that was sent is not sent again when the store cannot record it', async () => {
    const store = open()
    let failures = 3
    const outbox: Store['outbox'] = {
      ...store.outbox,
      async sent(number, sent) {
        if (failures-- > 0) throw new AppError('unavailable', 'the disk is full')
        await store.outbox.sent(number, sent)
      },
    }
    const made = await answered({ store: { ...store, outbox } })
    await advanceUntil(() => failures < 0)
    expect(made.sent).toHaveLength(1)
    expect(await store.outbox.list({ limit: 1 })).toMatchObject([{ state: 'sent', attempts: 1, providerId: 'sent-1' }])
  })

  test.each([
    { code: 'unavailable', state: 'sent' },
    { code: 'upstream', state: 'ambiguous' },
  ] as const)('whose attempt failed with $code is $state after the store recorded it', async ({ code, state }) => {
    const store = open()
    let failures = 2
    let sends = 0
    const failing = async (note: () => Promise<void>) => {
      if (failures-- > 0) throw new AppError('unavailable', 'the disk is full')
      await note()
    }
    const outbox: Store['outbox'] = {
      ...store.outbox,
      retry: (number, retry) => failing(() => store.outbox.retry(number, retry)),
      giveUp: (number, end) => failing(() => store.outbox.giveUp(number, end)),
    }
    const send = async () => {
      if (++sends === 1) throw new AppError(code, 'not now')
      return { id: 'p' }
    }
    await answered({ store: { ...store, outbox }, send })
    await clock.advance(60_000)
    await settle()
    expect(await store.outbox.list({ limit: 1 })).toMatchObject([{ state, attempts: 1 }])
  })

  test('that the platform refuses is dead at once, with its later parts', async () => {
    const made = await answered({
      turn: () => 'x'.repeat(250),
      async send() {
        throw new AppError('forbidden', 'you may not')
      },
    })
    const rows = await made.store.outbox.list({ limit: 10 })
    expect(rows.map(({ state }) => state)).toEqual(['dead', 'dead', 'dead'])
    expect(rows.map(({ attempts }) => attempts)).toEqual([0, 0, 1])
  })

  test('is dead after max_age_hours of an outage, and a replay starts over', async () => {
    let attempts = 0
    const made = await answered({
      config: { max_age_hours: 1 },
      async send() {
        attempts += 1
        throw new AppError('unavailable', 'nobody there')
      },
    })
    await advanceUntil(() => attempts > 10)
    await untilRow(made.store.outbox, { state: 'failed', attempts: 0, error: 'nobody there' })
    await clock.advance(40 * 60_000)
    await advanceUntil(() => made.deliveries.load().replies === 0)
    expect(await states(made)).toMatchObject({ outbox: ['dead'] })
    await made.store.outbox.replay(1)
    const before = attempts
    made.deliveries.wake()
    await advanceUntil(() => attempts > before)
    await untilRow(made.store.outbox, { state: 'failed', attempts: 0 })
  })

  test('is sent within half a minute after an outage that was probed one by one', async () => {
    let isAway = true
    let sends = 0
    const made = await bench({
      async send() {
        sends += 1
        if (isAway) throw new AppError('unavailable', 'nobody there')
        return { id: 'p' }
      },
    })
    await made.receive(
      ...Array.from({ length: 100 }, (_, index) => message(`m${index}`, { to: { to: `room ${index}` }, sender: `s${index}` })),
    )
    await settle()
    await clock.advance(10 * 60_000)
    await settle()
    // Eight sends run when the outage begins. Then the first five probes are quick, and each later one waits at least 15 s.
    expect(sends).toBeLessThanOrEqual(8 + 5 + 40)
    isAway = false
    await clock.advance(30_000)
    await until(() => made.deliveries.load().replies === 0)
    expect(await made.store.outbox.counts()).toEqual({ queued: 0, sending: 0, failed: 0, ambiguous: 0, dead: 0 })
    expect(made.sent).toHaveLength(100)
  })

  test('is sent after an outage although timers fire early and clocks disagree', async () => {
    // Node's timers drop the fraction of a millisecond, and an NTP client that corrects the time lets the wall clock run fast.
    let readings = 0
    const unevenClock: Clock = {
      nowMs: () => clock.nowMs() + readings++,
      monotonicMs: () => clock.monotonicMs(),
      sleep: (ms, signal) => clock.sleep(Math.max(1, Math.floor(ms)), signal),
    }
    let isAway = true
    const made = await bench({
      clock: unevenClock,
      async send() {
        if (isAway) throw new AppError('unavailable', 'the platform is away')
        return { id: 'sent' }
      },
    })
    const numbers = Array.from({ length: 20 }, (_, at) => `+1555000${1000 + at}`)
    for (const number of numbers) await made.receive(message(number, { sender: number, to: { to: number } }))
    for (let minute = 0; minute < 10; minute++) {
      await settle()
      await clock.advance(60_000)
    }
    isAway = false
    await advanceUntil(() => made.sent.length === numbers.length)
  })

  test('whose attempts are all interrupted by crashes is dead after max_attempts', async () => {
    const store = open()
    const createdAtMs = clock.nowMs()
    const given = { channel: 'x', account: 'a', to: { to: 'room' }, text: 't', part: 1, parts: 1, clientId: 'c', turnId: null, createdAtMs }
    const [number = 0] = await store.outbox.add([given])
    for (let crash = 0; crash < 5; crash++) {
      await store.outbox.start(number)
      await store.outbox.recover({ repeatable: ['x'], atMs: clock.nowMs() })
    }
    const made = await bench({ store, channel: { limits: { text: 100, unit: 'utf16', dedupesClientIds: true } } })
    await until(() => made.deliveries.load().replies === 0)
    expect(made.sent).toEqual([])
    expect(await store.outbox.list({ limit: 1 })).toMatchObject([{ state: 'dead', error: 'It was interrupted 5 times and never ended' }])
  })

  test('is recorded and reported without a secret that the refusal quotes', async () => {
    const made = await answered({
      async send() {
        throw new AppError('forbidden', 'the platform says: our-token is bad')
      },
    })
    expect(await made.store.outbox.list({ limit: 1 })).toMatchObject([{ error: 'the platform says: [redacted] is bad' }])
    expect(JSON.stringify([host.logs, host.emitted])).not.toContain('our-token')
  })

  test('of a channel that throws another error than AppError is ambiguous and logged', async () => {
    const made = await answered({
      async send() {
        throw new TypeError('a fault of ours')
      },
    })
    expect(await states(made)).toMatchObject({ outbox: ['ambiguous'] })
    expect(host.logs).toContainEqual(expect.objectContaining({ level: 'error', message: 'send failed inside the channel' }))
  })

  test('that a crash interrupted is ambiguous, and one that was not started is sent', async () => {
    const store = open()
    const reply = (text: string): NewReply => ({
      channel: 'x',
      account: 'a',
      to: { to: text },
      text,
      part: 1,
      parts: 1,
      clientId: text,
      turnId: null,
      createdAtMs: clock.nowMs(),
    })
    const [cut] = await store.outbox.add([reply('cut'), reply('waiting')])
    await store.outbox.start(cut ?? 0)
    const made = await bench({ store })
    await settle()
    expect(made.sent.map(({ text }) => text)).toEqual(['waiting'])
    expect((await states(made)).outbox).toEqual(['sent', 'ambiguous'])
    expect(host.logs).toContainEqual(expect.objectContaining({ level: 'warn', fields: expect.objectContaining({ replies: 1 }) }))
  })

  test('of a slow conversation delays no other conversation', async () => {
    const gate = Promise.withResolvers<void>()
    const made = await bench({
      async send(to) {
        if (to.to === 'slow') await gate.promise
        return { id: 'p' }
      },
    })
    await made.receive(message('m1', { to: { to: 'slow' }, sender: 's' }), message('m2', { to: { to: 'fast' } }))
    await settle()
    expect(made.sent.map(({ to }) => (to as { to: string }).to)).toEqual(['fast'])
    gate.resolve()
    await settle()
    expect(made.sent).toHaveLength(2)
  })
})

test('answering leaves no abort signal and no timer behind', async () => {
  const accepted = (async () => Response.json({ id: 'p' })) as typeof fetch
  const post = async (outbound: Outbound, signal: AbortSignal) => {
    const call = { fetch: accepted, provider: 'x', url: 'http://127.0.0.1:9', method: 'POST', body: outbound, signal }
    return (await callProvider(call)).json as { id: string }
  }
  let edits = 0
  // The reply replaces the draft.
  const update: Channel['update'] = async (_, __, outbound, signal) => {
    await post(outbound, signal)
    edits += 1
  }
  const made = await bench({
    send: (_, outbound, signal) => post(outbound, signal),
    // The turn takes longer than one call of typing.
    turn: async ({ text }) => clock.sleep(1).then(() => text),
    channel: { draftEveryMs: 1, typing: async (_, signal) => signal.throwIfAborted(), update },
  })
  const answered = async (count: number) => {
    const wanted = edits + count
    await made.receive(...Array.from({ length: count }, () => message(`m${crypto.randomUUID()}`)))
    for (let round = 0; round < 10 * count && edits < wanted; round++) {
      await clock.advance(1)
      await settle()
    }
    expect([edits, made.deliveries.load()]).toEqual([wanted, { messages: 0, replies: 0 }])
    // The requests refer to the draft and to the typing.
    made.turns.splice(0)
    return { signals: queryObjects(AbortSignal, { format: 'count' }), timers: clock.sleeping }
  }
  const before = await answered(2)
  const after = await answered(40)
  expect(after.signals - before.signals).toBeLessThan(10)
  expect(after.timers).toBe(before.timers)
})

describe('a connection that a channel holds', () => {
  test('delivers durably, is restarted after a failure, and ends with the daemon', async () => {
    let connections = 0
    let isOpen = false
    const made = await bench({
      channel: {
        async listen(deliver, signal) {
          connections += 1
          await deliver(message(`m${connections}`))
          if (connections === 1) throw new AppError('upstream', 'cut')
          isOpen = true
          await clock.sleep(1_000_000_000, signal)
          isOpen = false
        },
      },
    })
    await settle()
    await clock.advance(1000)
    await settle()
    expect(connections).toBe(2)
    expect(made.turns).toHaveLength(2)
    expect(isOpen).toBe(true)
    await made.deliveries.stop(0)
    expect(isOpen).toBe(false)
  })
})

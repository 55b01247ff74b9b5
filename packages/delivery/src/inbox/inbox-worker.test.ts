import { AppError, GATEWAY_TEXTS } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import {
  advanceUntil,
  bench,
  clock,
  host,
  message,
  open,
  running,
  settle,
  setUpDeliveries,
  states,
  storeWith,
  until,
  untilRow,
} from '../testing/delivery-bench.ts'

setUpDeliveries()

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
    await until(() => made.sent.length === 2)
    expect(made.sent.map(({ text }) => text)).toEqual([expect.stringContaining('takes longer than usual'), 'text of m1'])
    expect(await states(made)).toMatchObject({ inbox: ['done'] })
  })

  test('is not given up because the clock is a year ahead for a while, and runs when the model is back', async () => {
    const YEAR_MS = 365 * 24 * 3_600_000
    let isAway = true
    const made = await bench({
      turn({ text }) {
        if (isAway) throw new AppError('upstream', 'the model is overloaded', { isPassing: true })
        return text
      },
      send: async () => {
        if (isAway) throw new AppError('unavailable', 'the platform is away')
        return { id: 'p' }
      },
    })
    await made.receive(message('m1'))
    const pass = async (minutes: number) => {
      for (let minute = 0; minute < minutes; minute++) {
        await clock.advance(60_000)
        await settle()
      }
    }
    await pass(2)
    clock.jump(YEAR_MS)
    await pass(2)
    await made.receive(message('m2', { sender: '+15550003333', to: { to: '+15550003333' } }))
    await pass(2)
    expect(await states(made)).toEqual({ inbox: ['pending', 'pending'], outbox: ['failed', 'failed'] })
    clock.jump(-YEAR_MS)
    isAway = false
    await pass(2)
    expect((await states(made)).inbox).toEqual(['done', 'done'])
    expect(made.sent.map(({ text }) => text)).toEqual(expect.arrayContaining(['text of m1', 'text of m2']))
    expect((await states(made)).outbox).toEqual(['sent', 'sent', 'sent', 'sent'])
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
    await until(() => made.sent.some(({ text }) => text === GATEWAY_TEXTS.unanswered.text))
    expect(await states(made)).toMatchObject({ inbox: ['dead'] })
  })

  const full = async () => Promise.reject(new AppError('unavailable', 'No space left on device', { retryAfterSecs: 30 }))

  test.each(['the end of a turn', 'any end'])(
    'asks the model rarely while the store takes attempts but not %s, and is answered after that',
    async (refused) => {
      let isFull = true
      const store = storeWith(open(), ({ inbox, turns }) => ({
        inbox: { ...inbox, retry: (...given) => (isFull && refused === 'any end' ? full() : inbox.retry(...given)) },
        turns: { ...turns, finish: (end) => (isFull ? full() : turns.finish(end)) },
      }))
      const made = await bench({ store, config: { notice_after_secs: 0 } })
      await made.receive(message('m1'))
      const advance = async (minutes: number) => {
        for (let left = minutes; left > 0; left--) {
          await clock.advance(60_000)
          await settle()
        }
      }
      await advance(10)
      expect(made.turns.length).toBeLessThan(40)
      await advance(60)
      expect(made.turns.length).toBeGreaterThan(40)
      expect(made.turns.length).toBeLessThan(240)
      isFull = false
      await advance(2)
      expect(made.sent.map(({ text }) => text)).toEqual(['re: text of m1'])
      expect(await store.inbox.list({ limit: 1 })).toMatchObject([{ state: 'done', attempts: 1 }])
    },
  )

  test('asks the model again only once the end of its last attempt is stored, and then soon', async () => {
    let isFull = false
    const store = storeWith(open(), ({ inbox, turns }) => ({
      inbox: { ...inbox, retry: full, release: (number) => (isFull ? full() : inbox.release(number)) },
      turns: { ...turns, finish: (end) => (isFull ? full() : turns.finish(end)) },
    }))
    const made = await bench({
      store,
      turn({ text }) {
        if (made.turns.length === 1) isFull = true
        return text
      },
    })
    await made.receive(message('m1'))
    await settle()
    for (let minute = 0; minute < 60; minute++) {
      await clock.advance(60_000)
      await settle()
    }
    expect(made.turns).toHaveLength(1)
    isFull = false
    await clock.advance(5000)
    await until(() => made.sent.length === 1)
    expect(made.turns).toHaveLength(2)
  })

  test('that decides an approval outlives an outage of the store', async () => {
    let left = 8
    const decided: number[] = []
    const made = await bench({
      matchReply: () => ({ runId: 'run', stepId: 'step' }),
      async handleReply({ number }) {
        if (left-- > 0) throw new AppError('unavailable', 'No space left on device', { isPassing: true })
        decided.push(number)
        await made.store.inbox.done(number, clock.nowMs())
      },
    })
    await made.receive(message('yes'))
    await settle()
    await advanceUntil(() => decided.length > 0)
    expect(await states(made)).toMatchObject({ inbox: ['done'] })
  })

  test('is dead after max_attempts starts that were all interrupted', async () => {
    const store = open()
    const [number] = (await store.inbox.keep({
      channel: 'x',
      verdict: 'test',
      raw: null,
      receivedAtMs: clock.nowMs(),
      messages: [{ message: message('m1'), session: 's' }],
    })) as number[]
    for (let start = 0; start < 5; start++) await store.inbox.start(number ?? 0, 't1', 5)
    const made = await bench({ store })
    await settle()
    expect(made.turns).toEqual([])
    expect(await states(made)).toEqual({ inbox: ['dead'], outbox: ['sent'] })
    expect(made.sent).toMatchObject([{ text: GATEWAY_TEXTS.unanswered.text }])
    expect(await store.inbox.get(number ?? 0)).toMatchObject({ attempts: 5, error: expect.stringContaining('started 5 times') })
  })

  test('that crashes interrupted while its reply was shown leaves no half of an answer', async () => {
    const edits: unknown[] = []
    const store = open()
    const [number = 0] = (await store.inbox.keep({
      channel: 'x',
      verdict: 'test',
      raw: null,
      receivedAtMs: clock.nowMs(),
      messages: [{ message: message('m1'), session: 's' }],
    })) as number[]
    for (let start = 0; start < 5; start++) await store.inbox.start(number, 't1', 5)
    await store.inbox.draft(number, 'half an answer')
    const made = await bench({ store, channel: { update: async (_to, { id }, { text }) => void edits.push([id, text]) } })
    await until(() => edits.length > 0)
    expect(edits).toEqual(
      [['half an answer', GATEWAY_TEXTS.unanswered.text.slice(0, 100)]].map(([id, text]) => [id, expect.stringContaining(String(text))]),
    )
    expect(made.sent).toEqual([])
    await untilRow(store.inbox, { state: 'dead' })
  })

  test('that crashes the daemon is the only one that is given up', async () => {
    const store = open()
    const messages = Array.from({ length: 20 }, (_, index) => ({ message: message(`m${index}`), session: `session ${index}` }))
    await store.inbox.keep({ channel: 'x', verdict: 'test', raw: null, receivedAtMs: clock.nowMs(), messages })
    for (let life = 1; life <= 5; life++) {
      const beside = open()
      let isDead = false
      // A killed daemon: after the turn of the poison has begun, no call reaches the store.
      const mortal = <Port extends object>(port: Port): Port =>
        new Proxy(port, {
          get(target, name) {
            const member: unknown = Reflect.get(target, name)
            if (typeof member !== 'function') return typeof member === 'object' && member !== null ? mortal(member) : member
            return (...values: unknown[]) => {
              if (isDead) return new Promise(() => {})
              const result = Reflect.apply(member, target, values)
              return name === 'under' ? mortal(result) : result
            }
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

  test('whose commit becomes visible after one with a higher number still runs', async () => {
    const store = open()
    const messages = ['m1', 'm2'].map((id) => ({ message: message(id), session: `session ${id}` }))
    await store.inbox.keep({ channel: 'x', verdict: 'test', raw: null, receivedAtMs: clock.nowMs(), messages })
    let isHidden = true
    const late = storeWith(store, ({ inbox }) => ({
      inbox: {
        ...inbox,
        waiting: async (options) => (await inbox.waiting(options)).filter(({ number }) => !isHidden || number !== 1),
      },
    }))
    const made = await bench({ store: late })
    await settle()
    expect(made.turns.map(({ text }) => text)).toEqual(['text of m2'])
    isHidden = false
    made.deliveries.wake()
    await settle()
    expect(made.turns.map(({ text }) => text)).toEqual(['text of m2', 'text of m1'])
  })

  test('that another process replayed runs although the store fails at first', async () => {
    const store = open()
    let failures = 0
    const shaky = storeWith(store, ({ inbox }) => ({
      inbox: {
        ...inbox,
        async waiting(options) {
          if (failures-- > 0) throw new AppError('unavailable', 'the disk does not answer')
          return inbox.waiting(options)
        },
      },
    }))
    const made = await bench({ store: shaky })
    await made.receive(message('m1'))
    await settle()
    await clock.advance(1000)
    failures = 1
    await open().inbox.replay(1)
    await clock.advance(1000)
    await settle()
    await clock.advance(1000)
    await settle()
    expect(failures).toBeLessThan(0)
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
      await store.inbox.keep({ channel: 'x', verdict: 'test', raw: null, receivedAtMs: clock.nowMs(), messages })
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

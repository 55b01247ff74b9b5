import { AppError, type Channel, type Clock, type NewReply, type Store } from '@sluice/sdk'
import { asked, decision } from '@sluice/testkit/store-rules/approval-samples'
import { own } from '@sluice/testkit/store-rules/store-bench'
import { describe, expect, test } from 'vitest'
import {
  advanceUntil,
  bench,
  clock,
  type DeliveryBenchOptions,
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
import { healthOf } from './channel-health.ts'

setUpDeliveries()

test('a reply is sent later if the store could not tell whether its lease is held', async () => {
  const doubts = [true, true]
  const inDoubt = storeWith(open(), ({ lease }) => {
    const { name, epoch, shards, lost } = lease
    return { lease: { name, epoch, shards, lost, mayAct: () => !doubts.pop() && lease.mayAct(), release: () => lease.release() } }
  })
  const made = await bench({ store: inDoubt })
  await made.receive(message('m1'))
  await advanceUntil(() => made.sent.length > 0)
  expect(made.sent).toMatchObject([{ text: 're: text of m1' }])
  expect(await states(made)).toEqual({ inbox: ['done'], outbox: ['sent'] })
})

describe('a reply', () => {
  const pass = async (ms: number) => {
    await clock.advance(ms)
    await settle()
  }
  const answered = async (options: DeliveryBenchOptions) => {
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

  test('that is answered 503 is retried and marked as repeated, and one that never left is not marked', async () => {
    const failures = [new AppError('unavailable', 'answered 503', { mayHaveArrived: true }), new AppError('unavailable', 'no connection')]
    const made = await answered({
      async send(_to, { text }) {
        const failure = failures[text === 're: text of m1' ? 0 : 1]
        if (failure) {
          failures[text === 're: text of m1' ? 0 : 1] = undefined as never
          throw failure
        }
        return { id: 'p' }
      },
    })
    await made.receive(message('m2', { to: { to: 'other' } }))
    await advanceUntil(() => made.sent.length === 2)
    await settle()
    expect((await made.store.outbox.list({ limit: 9 })).toReversed()).toMatchObject([
      { state: 'sent', repeated: true, attempts: 1 },
      { state: 'sent', repeated: false, attempts: 1 },
    ])
    expect(made.observed).toContainEqual({ kind: 'reply', channel: 'x', what: 'repeated' })
  })

  test('that may have been sent is retried for as long as the platform drops repeats', async () => {
    let attempts = 0
    const made = await answered({
      channel: { limits: { text: 100, unit: 'utf16', dedupesForMs: 60_000 } },
      async send() {
        attempts += 1
        throw new AppError('upstream', 'the connection broke')
      },
    })
    await clock.advance(10 * 60_000)
    await settle()
    expect(attempts).toBeGreaterThan(2)
    const tries = attempts
    expect(await states(made)).toMatchObject({ outbox: ['ambiguous'] })
    await clock.advance(10 * 60_000)
    await settle()
    expect(attempts).toBe(tries)
  })

  test('that may have been sent is not retried when the machine slept for longer than the platform drops repeats', async () => {
    let attempts = 0
    const made = await answered({
      channel: { limits: { text: 100, unit: 'utf16', dedupesForMs: 60_000 } },
      async send() {
        attempts += 1
        // The monotonic clock does not move meanwhile.
        clock.jump(120_000)
        throw new AppError('upstream', 'the connection broke')
      },
    })
    await clock.advance(10 * 60_000)
    await settle()
    expect(attempts).toBe(1)
    expect(await states(made)).toMatchObject({ outbox: ['ambiguous'] })
  })

  test('of a channel whose last three may or may not have been sent makes it degraded, until one is sent', async () => {
    let isBroken = true
    const made = await bench({
      async send() {
        if (isBroken) throw new AppError('upstream', 'the connection broke')
        return { id: 'p' }
      },
    })
    for (const id of ['m1', 'm2', 'm3']) {
      expect(healthOf(made.channel).state).toBe('ok')
      await made.receive(message(id))
      await settle()
    }
    expect(healthOf(made.channel)).toMatchObject({
      state: 'degraded',
      detail: "the last 3 replies may or may not have been sent; 'sluice outbox replay --state ambiguous --channel x' sends them all again",
    })
    isBroken = false
    await made.receive(message('m4'))
    await settle()
    expect(healthOf(made.channel).state).toBe('ok')
  })

  test('makes a channel degraded also after a restart and in another node, until one is sent or they are discarded', async () => {
    let isBroken = true
    const store = open()
    const options = {
      store,
      async send() {
        if (isBroken) throw new AppError('upstream', 'the connection broke')
        return { id: 'p' }
      },
    } satisfies DeliveryBenchOptions
    const first = await bench(options)
    await first.receive(message('m1'), message('m2'), message('m3'))
    await expect.poll(() => healthOf(first.channel).state).toBe('degraded')
    await running.pop()?.stop(0)
    const second = await bench(options)
    expect(healthOf(second.channel).state).toBe('ok')
    await pass(61_000)
    expect(healthOf(second.channel)).toMatchObject({ state: 'degraded', detail: healthOf(first.channel).detail })
    const [row] = await store.outbox.list({ limit: 1 })
    await store.outbox.discard(row?.number ?? 0, { atMs: 1, by: 'test' })
    await pass(61_000)
    expect(healthOf(second.channel).state).toBe('ok')
    await second.receive(message('m4'))
    await expect.poll(() => healthOf(second.channel).state).toBe('degraded')
    isBroken = false
    await second.receive(message('m5'))
    await pass(61_000)
    await running.pop()?.stop(0)
    const third = await bench(options)
    isBroken = true
    await pass(61_000)
    await third.receive(message('m6'), message('m7'))
    await settle()
    expect(healthOf(third.channel).state).toBe('ok')
    await third.receive(message('m8'))
    // The node may take its shards only now, by its clock.
    const later = async (): Promise<string> => {
      await pass(1000)
      return healthOf(third.channel).state
    }
    await expect.poll(later).toBe('degraded')
  })

  test('says nothing of its channel once its shard has moved to another node', async () => {
    const made = await bench({ send: async () => Promise.reject(new AppError('unavailable', 'x answered 401')) })
    await made.receive(message('m1'))
    for (let minute = 0; minute < 7; minute++) await pass(60_000)
    expect(healthOf(made.channel).state).toBe('down')
    await own(open())
    await pass(60_000)
    expect(healthOf(made.channel).state).toBe('ok')
  })

  test('that is not sent for seconds makes no channel down when the clock is set ahead', async () => {
    const made = await bench({ send: async () => Promise.reject(new AppError('unavailable', 'x answered 401')) })
    await made.receive(message('m1'))
    await settle()
    clock.jump(3_600_000)
    await pass(10_000)
    expect((await made.store.outbox.list({ limit: 1 }))[0]).toMatchObject({ state: 'failed' })
    expect(healthOf(made.channel).state).toBe('ok')
  })

  test('that is not sent for minutes makes its channel down, with the reason, until one is sent', async () => {
    let isAway = true
    const made = await bench({
      async send() {
        if (isAway) throw new AppError('unavailable', 'x answered 401 (is the token valid?)')
        return { id: 'p' }
      },
    })
    await made.receive(message('m1'))
    const since = new Date(clock.nowMs()).toISOString()
    await settle()
    const minutes = async (count: number): Promise<void> => {
      for (let minute = 0; minute < count; minute++) {
        await clock.advance(60_000)
        await settle()
      }
    }
    await minutes(4)
    expect(healthOf(made.channel).state).toBe('ok')
    await minutes(2)
    expect(healthOf(made.channel)).toMatchObject({
      state: 'down',
      detail: `no reply could be sent since ${since}: x answered 401 (is the token valid?)`,
    })
    isAway = false
    await minutes(1)
    expect(healthOf(made.channel)).toMatchObject({ state: 'ok' })
  })

  test('that its conversation alone may have to wait for makes no channel down, and one that is given up no longer', async () => {
    let code: 'rate_limited' | 'unavailable' | 'forbidden' = 'rate_limited'
    const made = await bench({
      config: { max_age_hours: 1 },
      send: async () => Promise.reject(new AppError(code, 'the platform does not take this now')),
    })
    const pass = async (minutes: number): Promise<void> => {
      for (let minute = 0; minute < minutes; minute++) {
        await clock.advance(60_000)
        await settle()
      }
    }
    await made.receive(message('m1'))
    await pass(7)
    expect(healthOf(made.channel).state).toBe('ok')
    await made.receive(message('m2', { sender: '+15550003333', to: { to: '+15550003333' } }))
    await pass(1)
    expect(healthOf(made.channel).state).toBe('down')
    code = 'forbidden'
    await pass(1)
    expect(healthOf(made.channel).state).toBe('ok')
    code = 'unavailable'
    await made.receive(message('m3'))
    await pass(7)
    expect(healthOf(made.channel).state).toBe('down')
    // It is given up because of its age.
    await clock.advance(3_600_000)
    await pass(1)
    expect(healthOf(made.channel).state).toBe('ok')
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
    const observed = storeWith(store, ({ turns }) => ({
      turns: {
        ...turns,
        async finish(end) {
          const numbers = await turns.finish(end)
          found.push(await store.outbox.list({ limit: 10 }))
          return numbers
        },
      },
    }))
    await answered({ store: observed })
    expect(found).toMatchObject([[{ text: 're: text of m1' }]])
  })

  test('that was sent is not sent again when the store cannot record it', async () => {
    const store = open()
    let failures = 3
    const shaky = storeWith(store, ({ outbox }) => ({
      outbox: {
        ...outbox,
        async sent(number, sent) {
          if (failures-- > 0) throw new AppError('unavailable', 'the disk is full')
          await outbox.sent(number, sent)
        },
      },
    }))
    const made = await answered({ store: shaky })
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
    const shaky = storeWith(store, ({ outbox }) => ({
      outbox: {
        ...outbox,
        retry: (number, retry) => failing(() => outbox.retry(number, retry)),
        giveUp: (number, end) => failing(() => outbox.giveUp(number, end)),
      },
    }))
    const send = async () => {
      if (++sends === 1) throw new AppError(code, 'not now')
      return { id: 'p' }
    }
    await answered({ store: shaky, send })
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

  test('is dead when its next attempt would come after the reply window of the platform', async () => {
    let attempts = 0
    const made = await bench({
      channel: { limits: { text: 100, unit: 'utf16', replyWindow: { seconds: 600, after: 'closed' } } },
      async send() {
        attempts += 1
        throw new AppError('unavailable', 'nobody there')
      },
    })
    await made.receive(message('m1', { sentAtMs: clock.nowMs() }))
    await advanceUntil(() => attempts > 1)
    await clock.advance(600_000)
    await advanceUntil(() => made.deliveries.load().replies === 0)
    const error = 'nobody there; x accepts replies to a message for 10 min'
    expect(await made.store.outbox.list({ limit: 10 })).toMatchObject([{ state: 'dead', error }])
  })

  test('is tried once after the reply window, because the platform may accept it', async () => {
    const made = await bench({ channel: { limits: { text: 100, unit: 'utf16', replyWindow: { seconds: 600, after: 'closed' } } } })
    await made.receive(message('m1', { sentAtMs: clock.nowMs() - 601_000 }))
    await settle()
    expect(made.sent).toHaveLength(1)
  })

  test.each([
    ['within the window, quotes its message', 600, 'm1'],
    ['after the window, is sent as a message of its own', 601, undefined],
  ])('%s, where the platform allows proactive messages', async (_, ageSecs, replyTo) => {
    const replyWindow = { seconds: 600, after: 'proactive' } as const
    const made = await bench({ channel: { limits: { text: 100, unit: 'utf16', replyWindow } } })
    await made.receive(message('m1', { sentAtMs: clock.nowMs() - ageSecs * 1000 }))
    await settle()
    expect(made.sent).toMatchObject([{ to: { to: '+15550002222' } }])
    expect(made.sent.map(({ to }) => (to as { replyTo?: string }).replyTo)).toEqual([replyTo])
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
    const { outbox } = await own(store)
    const [number = 0] = await outbox.add([given])
    for (let crash = 0; crash < 5; crash++) {
      await outbox.start(number)
      await outbox.recover({ repeatable: ['x'], atMs: clock.nowMs() })
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

  describe('that asks a person', () => {
    const runId = 'run'
    const askedOn = async (store: Store): Promise<void> => {
      const prompt = { channel: 'x', account: 'a', to: { to: 'room' }, text: 'May it run?', part: 1, parts: 1, clientId: 'c', turnId: null }
      await store.approvals.open(asked(runId, { expiresAtMs: null }), [{ ...prompt, createdAtMs: clock.nowMs() }])
    }
    const broken = async (_attempt?: unknown) => {
      throw new AppError('upstream', 'the connection broke')
    }

    test('is sent again after a crash and after a lost connection, while the question is open', async () => {
      const store = open()
      await askedOn(store)
      await store.outbox.start(1)
      let attempts = 0
      const made = await bench({
        store,
        async send() {
          if (++attempts < 3) throw new AppError('upstream', 'the connection broke')
          return { id: 'p1' }
        },
      })
      await advanceUntil(() => attempts === 3)
      expect(made.sent).toMatchObject([{ text: 'May it run?', clientId: 'c' }])
      await untilRow(store.outbox, { state: 'sent', providerId: 'p1' })
    })

    test('is ambiguous after max_attempts sends of unknown outcome', async () => {
      const store = open()
      await askedOn(store)
      let attempts = 0
      await bench({ store, send: () => broken(void attempts++) })
      await advanceUntil(() => attempts === 5)
      await untilRow(store.outbox, { state: 'ambiguous', attempts: 5 })
    })

    test('is not sent again once it is decided', async () => {
      const store = open()
      await askedOn(store)
      await store.approvals.decide({ runId, stepId: asked(runId).stepId }, decision('approved'))
      await bench({ store, send: broken })
      await settle()
      await untilRow(store.outbox, { state: 'ambiguous', attempts: 1 })
    })
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

  test('of many conversations shares the account: hundreds a second, and one at a time in each conversation', async () => {
    const [ROOMS, EACH, ANSWER_MS] = [100, 6, 250]
    const inFlight = new Map<string, number>()
    const sent = new Map<string, string[]>()
    const atOnce: number[] = []
    const made = await bench({
      async send({ to }, { text }) {
        const room = String(to)
        inFlight.set(room, (inFlight.get(room) ?? 0) + 1)
        expect(inFlight.get(room)).toBe(1)
        atOnce.push([...inFlight.values()].reduce((sum, count) => sum + count, 0))
        await clock.sleep(ANSWER_MS)
        inFlight.set(room, 0)
        sent.set(room, [...(sent.get(room) ?? []), text])
        return { id: 'p' }
      },
    })
    for (let round = 0; round < EACH; round++)
      await made.receive(
        ...Array.from({ length: ROOMS }, (_, room) => message(`${round} in ${room}`, { to: { to: `room ${room}` }, sender: `s${room}` })),
      )
    const startMs = clock.monotonicMs()
    await settle()
    while (made.sent.length < ROOMS * EACH) {
      await clock.advance(ANSWER_MS)
      await settle()
    }
    expect((made.sent.length * 1000) / (clock.monotonicMs() - startMs)).toBeGreaterThan(200)
    expect(Math.max(...atOnce)).toBe(ROOMS)
    for (let room = 0; room < ROOMS; room++)
      expect(sent.get(`room ${room}`)).toEqual(Array.from({ length: EACH }, (_, round) => `re: text of ${round} in ${room}`))
  })
})

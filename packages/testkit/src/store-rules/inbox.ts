/** Rules for a stored message, from its first attempt to its end. */
import { expect } from 'vitest'
import { asked, decision } from './approval-samples.ts'
import { answerOne, arrival, bodyArrival, bodyOf, inbound, keepOne, reply, STARTS_MAX } from './delivery-samples.ts'
import { ODD_TEXTS, turnEnd, user } from './samples.ts'
import { own, type StoreRules } from './store-bench.ts'

const numbersOf = (rows: readonly { readonly number: number }[]): number[] => rows.map(({ number }) => number)

export const inboxRules: StoreRules = {
  'starting a message stores a running turn': async ({ store }) => {
    const { inbox, turns } = await own(store)
    await inbox.keep(arrival(['m1', 'm2']))
    const [first, second] = numbersOf(await inbox.waiting({ after: 0, limit: 2 })) as [number, number]
    expect(await inbox.start(first, 't1', STARTS_MAX)).toEqual({
      number: first,
      channel: 'roomchat',
      account: 'bot',
      session: 'roomchat:room',
      message: inbound('m1'),
      receivedAtMs: 1_000,
      sinceMs: 1_000,
      turnId: 't1',
      attempts: 1,
      checkpoint: [],
      draft: null,
    })
    expect(await inbox.get(first)).toMatchObject({ state: 'running', attempts: 1, turnId: 't1' })
    expect(await turns.get('t1')).toMatchObject({
      sessionId: 'roomchat:room',
      owner: 'channel:roomchat',
      source: 'roomchat',
      status: 'running',
      input: 'text of m1',
      attempts: 1,
      createdAtMs: 1_000,
      endedAtMs: null,
    })
    expect(await inbox.get(second)).toMatchObject({ state: 'pending', turnId: null })
  },

  'what the turn of a message has read of its files is kept until the message is changed': async ({ store, restart }) => {
    const [first = 0, second = 0] = (await store.inbox.keep(bodyArrival(['m1', 'm2']))) as number[]
    const read = { ...inbound('m1'), filesRead: { f1: { line: '[Voice] words' }, f2: { line: '[Image: a]', failedAtMs: 7 } } }
    await store.inbox.keepRead(first, 't1', read)
    expect(await store.inbox.get(first)).toMatchObject({ message: null })
    await store.inbox.start(first, 't1', STARTS_MAX, inbound('m1'))
    await store.inbox.keepRead(first, 'other', inbound('m1'))
    await store.inbox.keepRead(first, 't1', read)
    await store.inbox.retry(first, { error: 'e', atMs: 1 })
    const { inbox } = await restart()
    expect(await inbox.start(first, 't1', STARTS_MAX, inbound('m1'))).toMatchObject({ message: read })
    await inbox.markDead(first, { error: 'e', atMs: 2 })
    await inbox.keepRead(first, 't1', inbound('m1'))
    expect(await inbox.replay(first)).toBe(true)
    expect(await inbox.get(first)).toMatchObject({ message: read })
    expect(await inbox.get(second)).toMatchObject({ message: null, raw: bodyOf('m1 m2') })
    await inbox.keep(arrival('change'))
    const report = (await inbox.find('roomchat', inbound('change')))?.number ?? 0
    const edited = inbound('m1', { text: 'edited' })
    expect(await inbox.change(report, { number: first, was: read, message: edited, atMs: 3 })).toBe(true)
    expect(await inbox.start(first, 't2', STARTS_MAX, inbound('m1'))).toMatchObject({ message: edited })
  },

  'a message whose request is stored runs as the caller has parsed it, again after a replay': async ({
    store: { inbox, turns },
    restart,
  }) => {
    const [first = 0, second = 0] = (await inbox.keep(bodyArrival(['m1', 'm2']))) as number[]
    for (const [number, id] of [
      [first, 'm1'],
      [second, 'm2'],
    ] as const) {
      expect(await inbox.start(number, `turn of ${id}`, STARTS_MAX, inbound(id))).toMatchObject({ message: inbound(id) })
      expect(await turns.get(`turn of ${id}`)).toMatchObject({ input: `text of ${id}` })
      await turns.finish(turnEnd(`turn of ${id}`, { delivery: { inbox: number, replies: [] } }))
    }
    const again = (await restart()).inbox
    for (const number of [second, first]) {
      expect(await again.replay(number)).toBe(true)
      expect(await again.get(number)).toMatchObject({ raw: bodyOf('m1 m2'), message: null, state: 'pending' })
      expect(await again.start(number, `again ${number}`, STARTS_MAX, inbound('m'))).toMatchObject({ message: inbound('m') })
    }
  },

  'an edit replaces a message whose turn has not begun, and a deletion ends it': async ({ store: { inbox }, otherProcess }) => {
    const keep = async (made: Parameters<typeof inbox.keep>[0]) => ((await inbox.keep(made)) as number[])[0] ?? 0
    const numbers = [await keep(bodyArrival('m1')), await keep(arrival('m2')), await keep(arrival('m3'))] as const
    const [body, message, deleted] = numbers
    for (const number of [body, message]) {
      const report = await keep(arrival(`edit of ${number}`))
      const edited = inbound('m', { text: `new text of ${number}` })
      expect(await inbox.change(report, { number, message: edited, atMs: 2_000 })).toBe(true)
      expect(await inbox.get(report)).toMatchObject({ state: 'done', endedAtMs: 2_000 })
      expect(await inbox.change(report, { number, message: inbound('m'), atMs: 3_000 })).toBe(false)
      expect(await (await otherProcess()).inbox.get(number)).toMatchObject({ state: 'pending', message: edited })
      // The caller has parsed it before the edit.
      expect(await inbox.start(number, `t${number}`, STARTS_MAX, inbound('m1'))).toMatchObject({ message: edited })
    }
    const report = await keep(arrival('deletion'))
    expect(await inbox.change(report, { number: body, message: null, atMs: 2_000 })).toBe(false)
    expect(await inbox.get(report)).toMatchObject({ state: 'pending' })
    expect(await inbox.change(report, { number: deleted, message: null, atMs: 2_000 })).toBe(true)
    expect(await inbox.get(deleted)).toMatchObject({ state: 'done', endedAtMs: 2_000, turnId: null })
  },

  'a message that did nothing ends without its words, and with the body of its request unless another message needs that': async ({
    store: { inbox },
    otherProcess,
  }) => {
    const keep = async (made: Parameters<typeof inbox.keep>[0]) => (await inbox.keep(made)) as number[]
    const [stored = 0, alone = 0] = [...(await keep(arrival('m1'))), ...(await keep(bodyArrival('m2')))]
    const [first = 0, second = 0] = await keep(bodyArrival(['m3', 'm4']))
    for (const number of [stored, alone, first]) await inbox.drop(number, 2_000)
    const again = (await otherProcess()).inbox
    for (const number of [stored, alone]) {
      expect(await again.get(number)).toMatchObject({ state: 'done', endedAtMs: 2_000, message: null, raw: null })
      expect(await again.replay(number)).toBe(false)
    }
    expect(await again.get(second)).toMatchObject({ state: 'pending', raw: bodyOf('m3 m4') })
    await again.drop(second, 3_000)
    expect(await again.get(second)).toMatchObject({ state: 'done', raw: null })
    await again.drop(stored, 4_000)
    expect(await again.get(stored)).toMatchObject({ endedAtMs: 2_000 })
    expect(await again.known('roomchat', [inbound('m1')])).toEqual([true])
  },

  'every attempt resumes the same turn from its checkpoint': async ({ store, restart }) => {
    const number = await keepOne(store, 'm1')
    await store.inbox.start(number, 't1', STARTS_MAX)
    await store.turns.checkpoint('t1', ODD_TEXTS.map(user))
    const cut = await restart()
    expect(await cut.inbox.start(number, 't2', STARTS_MAX)).toMatchObject({ turnId: 't1', attempts: 2, checkpoint: ODD_TEXTS.map(user) })
    await cut.inbox.retry(number, { error: 'e', atMs: 5 })
    expect(await cut.inbox.start(number, 't3', STARTS_MAX)).toMatchObject({ turnId: 't1', attempts: 3, checkpoint: ODD_TEXTS.map(user) })
    expect(await cut.turns.get('t1')).toMatchObject({ status: 'running', attempts: 3 })
    expect(await cut.turns.get('t2')).toBeUndefined()
  },

  'the unfinished messages of a session are listed in their order, with their turns': async ({ store }) => {
    const { inbox } = store
    expect(await inbox.ofSession('roomchat:room')).toEqual([])
    const number = await keepOne(store, 'm1')
    const [second] = (await inbox.keep(
      arrival([], {
        verdict: 'token',
        receivedAtMs: 1_500,
        messages: [{ message: inbound('m2', { sender: '+15550200' }), session: 'roomchat:room', kind: 'turn' }],
      }),
    )) as [number]
    const first = { number, sender: '+15550100', verdict: 'signature', receivedAtMs: 1_000, turnId: null, isRunning: false }
    const other = {
      number: second,
      sender: '+15550200',
      kind: 'turn',
      verdict: 'token',
      receivedAtMs: 1_500,
      turnId: null,
      isRunning: false,
    }
    expect(await inbox.ofSession('roomchat:room')).toEqual([first, other])
    expect(await inbox.ofSession('roomchat:other')).toEqual([])
    await inbox.start(number, 't1', STARTS_MAX)
    expect(await inbox.ofSession('roomchat:room')).toEqual([{ ...first, turnId: 't1', isRunning: true }, other])
    await inbox.retry(number, { error: 'the model is away', atMs: 5_000 })
    expect(await inbox.ofSession('roomchat:room')).toEqual([{ ...first, turnId: 't1' }, other])
    await inbox.done(number, 2_000)
    expect(await inbox.ofSession('roomchat:room')).toEqual([other])
  },

  'a message that is stopped before its turn is done, for a reason that stays until it is replayed': async ({ store }) => {
    const { inbox } = store
    const number = await keepOne(store, 'm1')
    await inbox.done(number, 2_000, [reply('stopped')], 'stopped by its sender')
    expect(await inbox.get(number)).toMatchObject({ state: 'done', error: 'stopped by its sender', endedAtMs: 2_000 })
    expect(await inbox.done(number, 3_000, [], 'again')).toEqual([])
    expect(await inbox.list({ limit: 1 })).toMatchObject([{ state: 'done', error: 'stopped by its sender' }])
    expect(await inbox.replay(number)).toBe(true)
    expect(await inbox.get(number)).toMatchObject({ state: 'pending', error: null })
  },

  'the words of waiting messages join another one, which has not changed, in one commit': async ({ store, restart }) => {
    const { inbox } = store
    const number = await keepOne(store, 'm1')
    const [second, third] = [await keepOne(store, 'm2'), await keepOne(store, 'm3')]
    const was = inbound('m1')
    const joined = inbound('m1', { text: 'both', pieces: [was, inbound('m2')] })
    const edited = inbound('m2', { text: 'edited' })
    expect(await inbox.join({ number, into: { was: edited, joined }, pieces: [], atMs: 2_000 })).toBe(false)
    const stale = [
      { number: third, message: inbound('m3') },
      { number: second, message: edited },
    ]
    expect(await inbox.join({ number, into: { was, joined }, pieces: stale, atMs: 2_000 })).toBe(false)
    expect(await inbox.get(third)).toMatchObject({ state: 'pending' })
    expect(await inbox.join({ number, into: { was, joined }, pieces: [{ number: second, message: inbound('m2') }], atMs: 2_000 })).toBe(
      true,
    )
    expect(await inbox.get(second)).toMatchObject({ state: 'done', endedAtMs: 2_000, turnId: null, joinedTo: number })
    const report = await keepOne(store, 'e1')
    expect(await inbox.change(report, { number, was, message: edited, atMs: 3_000 })).toBe(false)
    const after = await restart()
    expect(await after.inbox.start(number, 't1', STARTS_MAX)).toMatchObject({ message: joined })
    expect(await after.inbox.join({ number, into: { was: joined, joined }, pieces: [], atMs: 2_000 })).toBe(false)
    expect(await after.inbox.known('roomchat', [inbound('m2')])).toEqual([true])
  },

  'a running turn takes the words of waiting messages with its checkpoint, and a replay brings them back': async ({ store, restart }) => {
    const { inbox } = store
    const number = await keepOne(store, 'm1')
    const second = await keepOne(store, 'm2')
    const pieces = [{ number: second, message: inbound('m2') }]
    expect(await inbox.join({ number, into: { turnId: 't1', messages: [user('both')] }, pieces, atMs: 2_000 })).toBe(false)
    await inbox.start(number, 't1', STARTS_MAX)
    expect(await inbox.join({ number, into: { turnId: 't1', messages: [user('both')] }, pieces, atMs: 2_000 })).toBe(true)
    expect(await inbox.join({ number, into: { turnId: 't1', messages: [user('twice')] }, pieces, atMs: 2_000 })).toBe(false)
    const after = await restart()
    expect(await after.inbox.get(second)).toMatchObject({ state: 'done', turnId: 't1', joinedTo: number })
    expect(await after.inbox.start(number, 't2', STARTS_MAX)).toMatchObject({ turnId: 't1', checkpoint: [user('both')] })
    await after.inbox.markDead(number, { error: 'e', atMs: 3_000 })
    expect(await after.inbox.replay(number)).toBe(true)
    expect(await after.inbox.get(second)).toMatchObject({ state: 'pending', turnId: null, endedAtMs: null })
    expect(await after.inbox.get(second)).not.toHaveProperty('joinedTo')
  },

  'a replayed command stays a command, and a replayed event is classified again': async ({ store }) => {
    const { inbox } = await own(store)
    for (const kind of ['command', 'procedure_event'] as const) {
      const { messages, ...request } = arrival([kind])
      await inbox.keep({ ...request, messages: messages.map((kept) => ({ ...kept, kind })) })
    }
    const rows = await inbox.waiting({ after: 0, limit: 2 })
    for (const { number } of rows) {
      await inbox.done(number, 2_000)
      expect(await inbox.replay(number)).toBe(true)
    }
    expect((await inbox.waiting({ after: 0, limit: 2 })).map(({ kind }) => kind)).toEqual(['command', undefined])
  },

  'interruptions while a turn awaits approval never exhaust its attempts': async ({ store, restart }) => {
    const number = await keepOne(store, 'm1')
    let cut = store
    for (let crash = 0; crash < 2 * STARTS_MAX; crash++) {
      expect(await cut.inbox.start(number, 't1', STARTS_MAX)).toMatchObject({ attempts: 1 })
      await cut.turns.waits('t1', true)
      expect(await cut.inbox.get(number)).toMatchObject({ state: 'running', attempts: 0 })
      if (crash < 3) cut = await restart()
    }
    await cut.turns.waits('t1', false)
    expect(await cut.inbox.get(number)).toMatchObject({ state: 'running', attempts: 1 })
    await cut.inbox.release(number)
    expect(await cut.inbox.get(number)).toMatchObject({ state: 'pending', attempts: 0 })
  },

  'attempts count only while no approval of the turn is pending': async ({ store, restart }) => {
    const number = await keepOne(store, 'm1')
    await store.inbox.start(number, 't1', STARTS_MAX)
    await store.turns.waits('t1', true)
    await store.approvals.open(asked('t1', { gate: 'tool' }), [])
    // A crash before the resumed turn waits again, repeated more often than the limit of attempts.
    let cut = store
    for (let crash = 0; crash < 2 * STARTS_MAX; crash++) {
      if (crash < 3) cut = await restart()
      expect(await cut.inbox.start(number, 't1', STARTS_MAX)).toMatchObject({ attempts: 0 })
      if (crash % 2) await cut.turns.waits('t1', true)
    }
    await cut.approvals.decide({ runId: 't1', stepId: 'step-1' }, decision('approved'))
    expect(await cut.inbox.start(number, 't1', STARTS_MAX)).toMatchObject({ attempts: 1 })
    await cut.turns.waits('t1', true)
    await cut.turns.waits('t1', false)
    expect(await cut.inbox.get(number)).toMatchObject({ attempts: 1 })
    expect(await cut.turns.get('t1')).toMatchObject({ attempts: 1, starts: 2 + 2 * STARTS_MAX })
  },

  'an attempt that waits for a person and is interrupted or cut off was not counted, and is not taken off again': async ({ store }) => {
    const number = await keepOne(store, 'm1')
    await store.inbox.start(number, 't1', STARTS_MAX)
    await store.turns.waits('t1', true)
    await store.inbox.release(number)
    expect(await store.inbox.get(number)).toMatchObject({ state: 'pending', attempts: 0 })
    expect(await store.inbox.start(number, 't1', STARTS_MAX)).toMatchObject({ attempts: 1 })
    await store.approvals.open(asked('t1', { gate: 'tool' }), [])
    expect(await store.inbox.start(number, 't1', STARTS_MAX)).toMatchObject({ attempts: 1 })
    await store.inbox.release(number)
    expect(await store.inbox.get(number)).toMatchObject({ state: 'pending', attempts: 1 })
    expect(await store.inbox.start(number, 't1', STARTS_MAX)).toMatchObject({ attempts: 1 })
    await store.inbox.retry(number, { error: 'no answer', atMs: 7_000, uncounted: true })
    expect(await store.inbox.get(number)).toMatchObject({ state: 'pending', attempts: 1 })
    expect(await store.turns.get('t1')).toMatchObject({ status: 'queued', attempts: 1 })
  },

  'odd texts reach the turn unchanged': async ({ store: { inbox } }) => {
    for (const [at, text] of ODD_TEXTS.entries()) {
      const [number] = await inbox.keep(arrival([], { messages: [{ message: inbound(`m${at}`, { text }), session: 's' }] }))
      expect(await inbox.start(Number(number), `t${at}`, STARTS_MAX)).toMatchObject({ message: { text } })
    }
  },

  'a turn that answers a message is not listed as unfinished': async ({ store, restart }) => {
    await store.inbox.start(await keepOne(store, 'm1'), 't1', STARTS_MAX)
    expect(await (await own(await restart())).turns.unfinished(10)).toEqual([])
  },

  'a done, dead or unknown message is not started': async ({ store }) => {
    const done = await answerOne(store, 'done')
    const dead = await keepOne(store, 'dead')
    await store.inbox.markDead(dead, { error: 'e', atMs: 5 })
    for (const number of [done, dead, 999]) expect(await store.inbox.start(number, 't', STARTS_MAX)).toBeUndefined()
    expect(await store.turns.get('t')).toBeUndefined()
    expect(await store.inbox.get(done)).toMatchObject({ state: 'done', attempts: 1 })
  },

  'a message without attempts left is not started and stays unchanged': async ({ store, restart }) => {
    const { inbox, turns } = store
    const number = await keepOne(store, 'm1')
    const other = await keepOne(store, 'm2')
    const { account } = (await inbox.get(number)) ?? {}
    const spent = { spent: true, number, channel: 'roomchat', account, turnId: 't1', attempts: 2, draft: 'p1' }
    await inbox.draft(number, 'p1')
    expect([(await inbox.get(number))?.draft, (await inbox.get(other))?.draft]).toEqual(['p1', undefined])
    for (const attempts of [1, 2]) expect(await inbox.start(number, 't1', 2)).toMatchObject({ turnId: 't1', attempts })
    const before = [await inbox.get(number), await turns.get('t1')]
    for (const startsMax of [2, 1]) expect(await inbox.start(number, 't2', startsMax)).toEqual(spent)
    expect([await inbox.get(number), await turns.get('t1')]).toEqual(before)
    expect(await turns.get('t2')).toBeUndefined()
    const again = (await restart()).inbox
    expect(await again.start(number, 't1', 2)).toEqual(spent)
    expect(await again.start(other, 't3', 2)).toMatchObject({ attempts: 1 })
    await again.markDead(number, { error: 'cut too often', atMs: 5 })
    expect(await again.start(number, 't1', 2)).toBeUndefined()
    expect(await again.get(number)).toMatchObject({ state: 'dead', attempts: 2 })
    await again.replay(number)
    expect(await again.start(number, 't4', 2)).toMatchObject({ turnId: 't4', attempts: 1 })
  },

  'concurrent starts never exceed the attempts allowed': async ({ store }) => {
    const number = await keepOne(store, 'm1')
    const started = await Promise.all([1, 2, 3].map(() => store.inbox.start(number, 't1', 2)))
    expect(started.map((one) => one && 'spent' in one)).toEqual([false, false, true])
    expect(await store.inbox.get(number)).toMatchObject({ attempts: 2 })
  },

  'a failed attempt waits for its retry time and counts': async ({ store }) => {
    const { inbox, turns } = await own(store)
    const number = await keepOne(store, 'm1')
    await inbox.start(number, 't1', STARTS_MAX)
    await inbox.retry(number, { error: 'no answer', atMs: 7_000 })
    expect(await inbox.get(number)).toMatchObject({ state: 'pending', attempts: 1, nextAtMs: 7_000, error: 'no answer', turnId: 't1' })
    expect(await inbox.waiting({ after: 0, limit: 10 })).toMatchObject([{ number, atMs: 7_000 }])
    expect(await turns.get('t1')).toMatchObject({ status: 'queued', attempts: 1, endedAtMs: null })
    await inbox.start(number, 't1', STARTS_MAX)
    expect(await inbox.get(number)).toMatchObject({ state: 'running', nextAtMs: null })
  },

  'an attempt without a connection waits for its retry and is not counted': async ({ store }) => {
    const { inbox, turns } = store
    const number = await keepOne(store, 'm1')
    await inbox.start(number, 't1', STARTS_MAX)
    await inbox.retry(number, { error: 'no answer', atMs: 7_000, uncounted: true })
    expect(await inbox.get(number)).toMatchObject({ state: 'pending', attempts: 0, nextAtMs: 7_000, error: 'no answer', turnId: 't1' })
    expect(await turns.get('t1')).toMatchObject({ status: 'queued', attempts: 0 })
    expect(await inbox.start(number, 't1', STARTS_MAX)).toMatchObject({ attempts: 1, sinceMs: 1_000 })
  },

  'an attempt interrupted by a shutdown is not counted': async ({ store }) => {
    const { inbox, turns } = store
    const number = await keepOne(store, 'm1')
    await inbox.start(number, 't1', STARTS_MAX)
    await inbox.release(number)
    expect(await inbox.get(number)).toMatchObject({ state: 'pending', attempts: 0, nextAtMs: null, error: null, turnId: 't1' })
    expect(await turns.get('t1')).toMatchObject({ attempts: 0, endedAtMs: null })
    expect(await inbox.start(number, 't2', STARTS_MAX)).toMatchObject({ attempts: 1, turnId: 't1' })
  },

  'only a running attempt can fail or be interrupted': async ({ store }) => {
    const { inbox } = store
    const pending = await keepOne(store, 'pending')
    const done = await answerOne(store, 'done')
    const before = await inbox.list({ limit: 10 })
    for (const number of [pending, done, 999]) {
      await inbox.retry(number, { error: 'e', atMs: 5 })
      await inbox.release(number)
    }
    expect(await inbox.list({ limit: 10 })).toEqual(before)
  },

  'a dead-lettered message is dead and its turn failed': async ({ store }) => {
    const { inbox, turns } = await own(store)
    const started = await keepOne(store, 'started')
    const fresh = await keepOne(store, 'fresh')
    await inbox.start(started, 't1', STARTS_MAX)
    await turns.checkpoint('t1', [user('x')])
    for (const number of [started, fresh]) {
      await inbox.markDead(number, { error: 'no way', atMs: 8_000 })
      expect(await inbox.get(number)).toMatchObject({ state: 'dead', endedAtMs: 8_000, nextAtMs: null, error: 'no way' })
    }
    expect(await turns.get('t1')).toMatchObject({ status: 'failed', endedAtMs: 8_000, error: { message: 'no way' } })
    await expect(turns.finish(turnEnd('t1', { delivery: { inbox: started, replies: [] } }))).rejects.toMatchObject({ code: 'conflict' })
    expect(await inbox.get(started)).toMatchObject({ state: 'dead' })
    expect(await inbox.waiting({ after: 0, limit: 10 })).toEqual([])
  },

  'a discarded message leaves the dead letters, and is recorded': async ({ store, restart }) => {
    const { inbox } = store
    const [dead, waiting] = [await keepOne(store, 'm1'), await keepOne(store, 'm2')]
    await inbox.markDead(dead, { error: 'no way', atMs: 8_000 })
    for (const number of [waiting, 999]) expect(await inbox.discard(number, { atMs: 9_000, by: 'device:d' })).toBe(false)
    expect(await inbox.discard(dead, { atMs: 9_000, by: 'device:d' })).toBe(true)
    expect(await inbox.discard(dead, { atMs: 9_500, by: 'device:d' })).toBe(false)
    const again = await restart()
    expect(await again.inbox.counts()).toEqual({ pending: 1, running: 0, dead: 0 })
    expect(numbersOf(await again.inbox.list({ limit: 9, state: 'discarded' }))).toEqual([dead])
    expect(await again.inbox.list({ limit: 9, state: 'dead' })).toEqual([])
    expect(await again.inbox.get(dead)).toMatchObject({ state: 'discarded', error: 'no way', endedAtMs: 8_000 })
    expect(await again.sops.audit({ limit: 9 })).toMatchObject([
      { kind: 'delivery_discarded', atMs: 9_000, by: 'device:d', detail: { box: 'inbox', number: dead, channel: 'roomchat' } },
    ])
    expect(await again.inbox.replay(dead)).toBe(true)
    expect(await again.inbox.start(dead, 't', STARTS_MAX)).toMatchObject({ message: inbound('m1') })
  },

  'an ended message is not dead-lettered': async ({ store }) => {
    const number = await answerOne(store, 'm1')
    await store.inbox.markDead(number, { error: 'e', atMs: 8_000 })
    expect(await store.inbox.get(number)).toMatchObject({ state: 'done', error: null })
    expect(await store.turns.get('turn of m1')).toMatchObject({ status: 'done' })
  },

  'lists waiting and interrupted messages oldest first, in pages': async ({ store, restart }) => {
    const numbers: number[] = []
    for (let at = 0; at < 7; at++) numbers.push(await keepOne(store, `m${at}`))
    const [running, retried, done, dead] = numbers as [number, number, number, number]
    for (const number of [running, retried, done]) await store.inbox.start(number, `t${number}`, STARTS_MAX)
    await store.inbox.retry(retried, { error: 'e', atMs: 9_000 })
    await store.turns.finish(turnEnd(`t${done}`, { delivery: { inbox: done, replies: [] } }))
    await store.inbox.markDead(dead, { error: 'e', atMs: 1 })
    const { inbox } = await own(await restart())
    const expected = numbers.filter((number) => number !== done && number !== dead)
    const waiting = await inbox.waiting({ after: 0, limit: 10 })
    expect(waiting).toEqual(
      expected.map((number) => ({
        number,
        channel: 'roomchat',
        account: 'bot',
        sender: '+15550100',
        lane: 'roomchat:room',
        atMs: number === retried ? 9_000 : 0,
        interruptions: number === running ? 1 : 0,
        sinceMs: 1_000,
      })),
    )
    expect(await inbox.oldestWaitingMs()).toBe(1_000)
    const first = await inbox.waiting({ after: 0, limit: 2 })
    const rest = await inbox.waiting({ after: first[1]?.number ?? 0, limit: 10 })
    expect(numbersOf([...first, ...rest])).toEqual(expected)
    expect(first).toHaveLength(2)
  },

  'lists entries newest first, in pages, by state or channel': async ({ store }) => {
    const { inbox } = store
    const done = await answerOne(store, 'a')
    const dead = await keepOne(store, 'b', { channel: 'bizchat' })
    const pending = await keepOne(store, 'c')
    const second = await keepOne(store, 'd', { channel: 'bizchat' })
    await inbox.markDead(dead, { error: 'e', atMs: 1 })
    const list = async (filter: object) => numbersOf(await inbox.list({ limit: 10, ...filter }))
    expect(await list({})).toEqual([second, pending, dead, done])
    expect(await list({ limit: 2 })).toEqual([second, pending])
    expect(await list({ before: pending })).toEqual([dead, done])
    expect(await list({ state: 'pending' })).toEqual([second, pending])
    expect(await list({ state: 'pending', before: second })).toEqual([pending])
    expect(await list({ state: 'pending', limit: 1 })).toEqual([second])
    expect(await list({ state: 'done' })).toEqual([done])
    expect(await list({ state: 'done', channel: 'bizchat' })).toEqual([])
    expect(await list({ channel: 'bizchat' })).toEqual([second, dead])
    expect(await list({ channel: 'bizchat', state: 'dead' })).toEqual([dead])
    expect(await list({ state: 'unknown' })).toEqual([])
    expect((await inbox.list({ limit: 1 }))[0]).toEqual({
      number: second,
      channel: 'bizchat',
      account: 'bot',
      messageId: 'd',
      sender: '+15550100',
      session: 'roomchat:room',
      state: 'pending',
      attempts: 0,
      receivedAtMs: 1_000,
      nextAtMs: null,
      endedAtMs: null,
      turnId: null,
      error: null,
    })
  },

  'a filtered list finds one entry among many': async ({ store }) => {
    const rare = await answerOne(store, 'rare')
    const ids = Array.from({ length: 12_000 }, (_, at) => `m${at}`)
    await store.inbox.keep(arrival(ids, { channel: 'bizchat' }))
    expect(numbersOf(await store.inbox.list({ limit: 10, channel: 'roomchat' }))).toEqual([rare])
    expect(numbersOf(await store.inbox.list({ limit: 10, state: 'done' }))).toEqual([rare])
    expect(await store.inbox.list({ limit: 11_999, channel: 'bizchat' })).toHaveLength(11_999)
  },

  'a replay runs a done or dead message again in a new turn': async ({ store }) => {
    const { inbox, turns } = store
    const done = await answerOne(store, 'done')
    const dead = await keepOne(store, 'dead')
    await inbox.start(dead, 'turn of dead', STARTS_MAX)
    await inbox.markDead(dead, { error: 'e', atMs: 1 })
    for (const [number, id] of [
      [done, 'done'],
      [dead, 'dead'],
    ] as const) {
      expect(await inbox.replay(number)).toBe(true)
      expect(await inbox.replay(number)).toBe(false)
      expect(await inbox.get(number)).toMatchObject({ state: 'pending', attempts: 0, endedAtMs: null, turnId: null, error: null })
      expect(await inbox.start(number, `new turn of ${id}`, STARTS_MAX)).toMatchObject({
        turnId: `new turn of ${id}`,
        attempts: 1,
        message: inbound(id),
        checkpoint: [],
      })
      expect(await inbox.replay(number)).toBe(false)
      await turns.finish(turnEnd(`new turn of ${id}`, { delivery: { inbox: number, replies: [] } }))
      expect(await inbox.get(number)).toMatchObject({ state: 'done' })
    }
    expect(await turns.get('turn of done')).toMatchObject({ status: 'done' })
    expect(await turns.get('turn of dead')).toMatchObject({ status: 'failed' })
    expect(await inbox.replay(999)).toBe(false)
  },

  'stores the kind of a message and the approval it answers': async ({ store, restart }) => {
    const approval = { runId: 'release/17', stepId: 'deploy ü' }
    const { messages, ...request } = arrival(['reply', 'press', 'event', 'turn', 'unknown'])
    const kinds = [
      { kind: 'approval_reply', approval },
      { kind: 'approval_reply' },
      { kind: 'procedure_event' },
      { kind: 'turn' },
      {},
    ] as const
    await store.inbox.keep({ ...request, messages: messages.map((message, index) => ({ ...message, ...kinds[index] })) })
    const { inbox } = await own(await restart())
    const waiting = await inbox.waiting({ after: 0, limit: 10 })
    expect(waiting.map(({ kind }) => kind)).toEqual(['approval_reply', 'approval_reply', 'procedure_event', 'turn', undefined])
    const started = await Promise.all(numbersOf(waiting).map((number) => inbox.start(number, `t${number}`, STARTS_MAX)))
    expect(started.map((one) => one && 'approval' in one && one.approval)).toEqual([approval, false, false, false, false])
  },

  'a replay resets the kind of a message that answers no approval': async ({ store }) => {
    const { inbox } = await own(store)
    const { messages, ...request } = arrival(['reply', 'event', 'turn'])
    const kinds = ['approval_reply', 'procedure_event', 'turn'] as const
    await inbox.keep({ ...request, messages: messages.map((message, index) => ({ ...message, kind: kinds[index] ?? 'turn' })) })
    for (const number of numbersOf(await inbox.waiting({ after: 0, limit: 10 }))) {
      await inbox.done(number, 1)
      await inbox.replay(number)
    }
    expect((await inbox.waiting({ after: 0, limit: 10 })).map(({ kind }) => kind)).toEqual(['approval_reply', undefined, undefined])
  },

  'counts unfinished messages by state, and dead ones': async ({ store }) => {
    const { inbox } = store
    expect(await inbox.counts()).toEqual({ pending: 0, running: 0, dead: 0 })
    await answerOne(store, 'done')
    const numbers: number[] = []
    for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) numbers.push(await keepOne(store, id))
    for (const number of numbers.slice(0, 2)) await inbox.start(number, `t${number}`, STARTS_MAX)
    await inbox.markDead(numbers[2] ?? 0, { error: 'e', atMs: 1 })
    expect(await inbox.counts()).toEqual({ pending: 3, running: 2, dead: 1 })
  },
}

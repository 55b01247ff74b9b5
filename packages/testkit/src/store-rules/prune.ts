/** Rules for pruning. */
import type { DeletedRows, Retention, Store } from '@sluice/sdk'
import { expect } from 'vitest'
import { asked, decision } from './approval-samples.ts'
import { answerOne, arrival, bodyArrival, bodyOf, inbound, keepOne, reply, STARTS_MAX } from './delivery-samples.ts'
import { failedTurn, queuedTurn, turnEnd, user } from './samples.ts'
import { ended, sopRun, startRuns } from './sop-samples.ts'
import { own, type StoreRules } from './store-bench.ts'

/** Limits that prune nothing; a rule overrides some. */
const upTo = (part: Partial<Retention>): Retention => ({
  endedBeforeMs: 0,
  idsBeforeMs: 0,
  keysBeforeMs: 9e12,
  historyBeforeMs: 0,
  bytesMax: Number.MAX_SAFE_INTEGER,
  nowMs: 1_000,
  limit: 100,
  ...part,
})

const NOTHING: DeletedRows = { messages: 0, contents: 0, replies: 0, approvals: 0, turns: 0, runs: 0, historyTurns: 0, conversations: 0 }

/** Ends the turn of a message that was started as `t…`. */
const answer = (store: Store, number: number): Promise<readonly number[]> =>
  store.turns.finish(turnEnd(`t${number}`, { delivery: { inbox: number, replies: [] } }))

export const pruneRules: StoreRules = {
  'drops ended messages past the age limit; their ids may arrive again': async ({ store }) => {
    const { inbox } = store
    const done = await answerOne(store, 'done')
    const dead = await keepOne(store, 'dead')
    await inbox.markDead(dead, { error: 'e', atMs: 2_000 })
    expect(await store.prune(upTo({ endedBeforeMs: 2_000, idsBeforeMs: 9_000 }))).toEqual(NOTHING)
    expect(await store.prune(upTo({ endedBeforeMs: 2_001, idsBeforeMs: 9_000 }))).toMatchObject({ messages: 2 })
    for (const number of [done, dead]) expect(await inbox.get(number)).toBeUndefined()
    expect(await inbox.counts()).toEqual({ pending: 0, running: 0, dead: 0 })
    expect(await inbox.known('roomchat', [inbound('done'), inbound('dead')])).toEqual([false, false])
    expect(await inbox.keep(arrival(['done', 'dead']))).toEqual([expect.any(Number), expect.any(Number)])
  },

  'keeps a message while its id must be remembered': async ({ store }) => {
    await answerOne(store, 'm1')
    await store.prune(upTo({ endedBeforeMs: 9_000, idsBeforeMs: 1_000 }))
    expect(await store.inbox.keep(arrival('m1'))).toEqual([null])
    expect(await store.prune(upTo({ endedBeforeMs: 9_000, idsBeforeMs: 9_000 }))).toMatchObject({ messages: 1 })
  },

  'a clock set back does not drop an id early': async ({ store }) => {
    const number = await keepOne(store, 'm1', { receivedAtMs: 5_000 })
    await store.inbox.markDead(number, { error: 'e', atMs: 2_000 })
    expect(await store.prune(upTo({ endedBeforeMs: 9_000, idsBeforeMs: 3_000 }))).toMatchObject({ messages: 0 })
    expect(await store.inbox.keep(arrival('m1'))).toEqual([null])
  },

  'never reuses a number, not even the newest': async ({ store, restart }) => {
    const [queued = 0] = await store.outbox.add([reply('a')])
    await store.outbox.start(queued)
    await store.outbox.giveUp(queued, { state: 'ambiguous', error: 'e', atMs: 1 })
    const number = await answerOne(store, 'm1')
    await store.prune(upTo({ endedBeforeMs: 9_000, idsBeforeMs: 9_000 }))
    const again = await restart()
    expect(await keepOne(again, 'm2')).toBeGreaterThan(number)
    expect((await again.outbox.add([reply('b')]))[0]).toBeGreaterThan(queued)
  },

  'never drops an unfinished message or its content': async ({ store, restart }) => {
    const { inbox, outbox } = store
    const pending = await keepOne(store, 'pending')
    const running = await keepOne(store, 'running')
    const retried = await keepOne(store, 'retried')
    for (const number of [running, retried]) await inbox.start(number, `t${number}`, STARTS_MAX)
    await inbox.retry(retried, { error: 'e', atMs: 1 })
    const [queued = 0, sending = 0, failed = 0] = await outbox.add(['a', 'b', 'c'].map((text) => reply(text)))
    for (const number of [sending, failed]) await outbox.start(number)
    await outbox.retry(failed, { error: 'e', atMs: 1 })
    expect(await store.prune(upTo({ endedBeforeMs: 9e12, idsBeforeMs: 9e12, historyBeforeMs: 9e12, bytesMax: 0, nowMs: 9e12 }))).toEqual(
      NOTHING,
    )
    const again = await restart()
    for (const number of [pending, running, retried]) {
      expect(await again.inbox.get(number)).toMatchObject({ message: { sender: '+15550100' } })
      expect(await again.inbox.start(number, 't', STARTS_MAX)).toBeDefined()
    }
    for (const number of [queued, sending, failed]) expect(await again.outbox.get(number)).toBeDefined()
  },

  'drops sent, dead and ambiguous replies past the age limit': async ({ store }) => {
    const { outbox } = store
    const numbers = await outbox.add(['a', 'b', 'c', 'd'].map((text) => reply(text)))
    const [sent = 0, ambiguous = 0, dead = 0, late = 0] = numbers
    for (const number of numbers) await outbox.start(number)
    await outbox.sent(sent, { providerId: 'p', atMs: 10 })
    await outbox.giveUp(ambiguous, { state: 'ambiguous', error: 'e', atMs: 20 })
    await outbox.giveUp(dead, { state: 'dead', error: 'e', atMs: 30 })
    await outbox.sent(late, { providerId: 'p', atMs: 40 })
    expect(await store.prune(upTo({ endedBeforeMs: 40 }))).toEqual({ ...NOTHING, replies: 3 })
    expect((await outbox.list({ limit: 10 })).map(({ number }) => number)).toEqual([late])
  },

  'over the size limit drops the contents of done messages first, oldest first': async ({ store }) => {
    const { inbox } = store
    const pending = await keepOne(store, 'm0')
    const numbers: number[] = []
    for (const id of ['m1', 'm2', 'm3', 'm4']) numbers.push(await answerOne(store, id, [reply(id)]))
    const dead = await keepOne(store, 'm5')
    await inbox.markDead(dead, { error: 'e', atMs: 1 })
    expect(await store.prune(upTo({}))).toEqual(NOTHING)
    expect(await store.prune(upTo({ bytesMax: 0, limit: 1 }))).toMatchObject({ contents: 1 })
    expect(await store.prune(upTo({ bytesMax: 0, limit: 2 }))).toMatchObject({ contents: 2 })
    const [first = 0, second = 0, third = 0, fourth = 0] = numbers
    for (const number of [first, second, third]) {
      expect(await inbox.get(number)).toMatchObject({ state: 'done', raw: null, message: null, sender: '+15550100', replies: [{}] })
      expect(await inbox.replay(number)).toBe(false)
    }
    for (const number of [pending, fourth, dead]) expect(await inbox.get(number)).toMatchObject({ message: {} })
    expect(await inbox.keep(arrival(['m1', 'm2', 'm3']))).toEqual([null, null, null])
  },

  'over the size limit drops sent replies and turns, but no dead letters': async ({ store }) => {
    const { outbox, turns, sessions } = store
    await answerOne(store, 'm1', [reply('sent'), reply('dead'), reply('queued')])
    const [sent = 0, dead = 0, queued = 0] = (await outbox.list({ limit: 10 })).map(({ number }) => number).toReversed()
    await outbox.sent(sent, { providerId: 'p', atMs: 1 })
    await outbox.giveUp(dead, { state: 'dead', error: 'e', atMs: 1 })
    await turns.enqueue(queuedTurn('waiting'))
    expect(await store.prune(upTo({ bytesMax: 0, nowMs: 9_000 }))).toEqual({
      ...NOTHING,
      contents: 1,
      replies: 1,
      turns: 1,
      historyTurns: 1,
    })
    expect((await outbox.list({ limit: 10 })).map(({ number }) => number)).toEqual([queued, dead])
    expect(await sessions.history('room', 10)).toEqual([])
    expect(await turns.get('waiting')).toMatchObject({ status: 'queued' })
  },

  'drops old turns without a live key, and keeps counting their cost': async ({ store }) => {
    const { turns } = store
    const HOUR_MS = 3_600_000
    for (const at of [1, 2, 3]) await turns.finish(turnEnd(`t${at}`, { endedAtMs: at * HOUR_MS, costUsd: 0.25 }))
    await turns.enqueue(queuedTurn('waiting'))
    const old = upTo({ endedBeforeMs: 3 * HOUR_MS, keysBeforeMs: 2 * HOUR_MS })
    expect(await store.prunable(old)).toEqual({ ...NOTHING, turns: 1 })
    expect(await store.prune(old)).toEqual({ ...NOTHING, turns: 1 })
    expect(await store.prune({ ...old, keysBeforeMs: 9e12 })).toEqual({ ...NOTHING, turns: 1 })
    expect(await turns.get('t2')).toBeUndefined()
    expect(await turns.get('t3')).toMatchObject({ status: 'done' })
    expect(await turns.get('waiting')).toMatchObject({ status: 'queued' })
    for (const [sinceMs, usd] of [
      [0, 0.75],
      [2 * HOUR_MS, 0.5],
      [3 * HOUR_MS, 0.25],
      [4 * HOUR_MS, 0],
    ] as const)
      expect(await turns.spentUsd(sinceMs), String(sinceMs)).toBe(usd)
    const all = await turns.costs({ sinceMs: 0, untilMs: 1000 * HOUR_MS, periodMs: HOUR_MS, offsetMs: 0 })
    expect(all.reduce((sum, { costUsd }) => sum + costUsd, 0)).toBeCloseTo(await turns.spentUsd(0))
    expect(await store.sessions.history('room', 10)).toHaveLength(6)
  },

  'costs are listed as before once their turns are dropped, for 400 days': async ({ store, restart }) => {
    const HOUR_MS = 3_600_000
    const ends = [
      turnEnd('t1', { endedAtMs: HOUR_MS, costUsd: 1, model: 'a', inputTokens: 10, outputTokens: 1 }),
      turnEnd('t2', { endedAtMs: HOUR_MS + 1, costUsd: 2, model: 'b', inputTokens: 20, outputTokens: 2 }),
      turnEnd('t3', { endedAtMs: HOUR_MS + 2, costUsd: 4, model: 'b', agent: 'support', inputTokens: 40, outputTokens: 4 }),
      turnEnd('t4', { endedAtMs: HOUR_MS + 3, costUsd: 0, model: 'b', inputTokens: 80, outputTokens: 8 }),
      failedTurn('t5', { endedAtMs: HOUR_MS + 4, costUsd: 8, inputTokens: 160, outputTokens: 16 }),
      turnEnd('t6', { endedAtMs: 2 * HOUR_MS, costUsd: 16, model: 'b', inputTokens: 320, outputTokens: 32 }),
    ]
    for (const end of ends) await store.turns.finish(end)
    await store.turns.enqueue(queuedTurn('waiting'))
    const costsOf = ({ turns }: Store) => turns.costs({ sinceMs: 0, untilMs: 1_000 * HOUR_MS, periodMs: HOUR_MS, offsetMs: 0 })
    const first = { atMs: HOUR_MS, agent: 'main' }
    const listed = [
      { ...first, model: null, costUsd: 8, turns: 1, inputTokens: 160, outputTokens: 16 },
      { ...first, model: 'a', costUsd: 1, turns: 1, inputTokens: 10, outputTokens: 1 },
      { ...first, model: 'b', costUsd: 2, turns: 2, inputTokens: 100, outputTokens: 10 },
      { ...first, agent: 'support', model: 'b', costUsd: 4, turns: 1, inputTokens: 40, outputTokens: 4 },
      { ...first, atMs: 2 * HOUR_MS, model: 'b', costUsd: 16, turns: 1, inputTokens: 320, outputTokens: 32 },
    ]
    expect(await costsOf(store)).toEqual(listed)
    for (const [endedBeforeMs, turns] of [
      [HOUR_MS + 3, 3],
      [2 * HOUR_MS, 2],
    ] as const) {
      expect(await store.prune(upTo({ endedBeforeMs }))).toEqual({ ...NOTHING, turns })
      expect(await costsOf(store)).toEqual(listed)
    }
    await store.turns.finish(turnEnd('t7', { endedAtMs: HOUR_MS + 5, costUsd: 32, model: 'a', inputTokens: 1, outputTokens: 2 }))
    const more = listed.with(1, { ...first, model: 'a', costUsd: 33, turns: 2, inputTokens: 11, outputTokens: 3 })
    expect(await costsOf(store)).toEqual(more)
    expect(await store.prune(upTo({ bytesMax: 0, nowMs: 3 * HOUR_MS }))).toMatchObject({ turns: 2 })
    const again = await restart()
    expect(await costsOf(again)).toEqual(more)
    expect(await again.turns.spentUsd(0)).toBe(63)
    await again.prune(upTo({ nowMs: 401 * 24 * HOUR_MS }))
    expect(await costsOf(again)).toEqual([])
    expect(await again.turns.spentUsd(0)).toBe(0)
  },

  'drops old session messages and inactive sessions': async ({ store }) => {
    const { sessions, turns } = store
    for (const at of [1, 2, 3]) await turns.finish(turnEnd(`t${at}`, { endedAtMs: at * 1_000, messages: [user(`said ${at}`)] }))
    await turns.finish(turnEnd('old', { sessionId: 'quiet', endedAtMs: 1_500 }))
    expect(await sessions.history('room', 10)).toHaveLength(3)
    expect(await store.prunable(upTo({ historyBeforeMs: 2_000 }))).toEqual({ ...NOTHING, historyTurns: 2, conversations: 1 })
    expect(await store.prune(upTo({ historyBeforeMs: 2_000 }))).toEqual({ ...NOTHING, historyTurns: 2, conversations: 1 })
    expect(await sessions.history('room', 10)).toEqual([user('said 2'), user('said 3')])
    expect(await sessions.get('quiet')).toBeUndefined()
    await turns.finish(turnEnd('t4', { endedAtMs: 4_000, messages: [user('said 4')] }))
    expect(await sessions.history('room', 2)).toEqual([user('said 3'), user('said 4')])
    expect(await sessions.history('room', 10)).toEqual([user('said 2'), user('said 3'), user('said 4')])
    expect((await sessions.messagesByTurn('room', { after: 0, limit: 10 })).map(({ atMs }) => atMs)).toEqual([2_000, 3_000, 4_000])
  },

  'drops ended runs past the age limit': async ({ store }) => {
    await startRuns(store, ['r1', 'r2', 'r3'])
    await store.sops.advance(sopRun('r1'), ended(sopRun('r1'), { endedAtMs: 1_000 }), [])
    await store.sops.advance(sopRun('r2'), ended(sopRun('r2')), [])
    expect(await store.prune(upTo({ endedBeforeMs: 2_000 }))).toEqual({ ...NOTHING, runs: 1 })
    expect(await store.sops.get('r1')).toBeUndefined()
    for (const id of ['r2', 'r3']) expect(await store.sops.get(id)).toBeDefined()
  },

  'keeps a message as long as a reply to it': async ({ store }) => {
    const number = await answerOne(store, 'm1', [reply('slow')])
    const all = upTo({ endedBeforeMs: 9_000, idsBeforeMs: 9_000 })
    expect(await store.prune(all)).toMatchObject({ messages: 0, replies: 0 })
    const [slow] = await store.outbox.list({ limit: 1 })
    await store.outbox.sent(slow?.number ?? 0, { providerId: 'p', atMs: 3_000 })
    expect(await store.prune(all)).toMatchObject({ messages: 1, replies: 1 })
    expect(await store.inbox.get(number)).toBeUndefined()
  },

  'keeps the body of a batch until all its messages are done': async ({ store, restart }) => {
    const ids = ['m1', 'm2', 'm3', 'm4']
    const [done = 0, ...others] = (await store.inbox.keep(bodyArrival(ids))) as number[]
    const [pending = 0, running = 0, dead = 0] = others
    for (const number of [done, running]) await store.inbox.start(number, `t${number}`, STARTS_MAX, inbound('m'))
    await answer(store, done)
    await store.inbox.markDead(dead, { error: 'e', atMs: 8_000 })
    const all = upTo({ endedBeforeMs: 8_000, idsBeforeMs: 9_000, bytesMax: 0 })
    expect(await store.prune(all)).toMatchObject({ messages: 0, contents: 0 })
    const again = await restart()
    for (const number of [done, ...others]) expect(await again.inbox.get(number)).toMatchObject({ raw: bodyOf('m1 m2 m3 m4') })
    for (const number of [pending, running]) await again.inbox.markDead(number, { error: 'e', atMs: 8_000 })
    expect(await again.prune(all)).toMatchObject({ messages: 0, contents: 0 })
    expect(await again.inbox.get(pending)).toMatchObject({ state: 'dead', raw: bodyOf('m1 m2 m3 m4') })
    expect(await again.prune({ ...all, endedBeforeMs: 8_001 })).toMatchObject({ messages: 4 })
    expect(await again.inbox.list({ limit: 10 })).toEqual([])
  },

  'a body in use does not block others and goes when its batch is done': async ({ store }) => {
    const [first = 0, second = 0] = (await store.inbox.keep(bodyArrival(['m1', 'm2']))) as number[]
    await store.inbox.start(first, `t${first}`, STARTS_MAX, inbound('m1'))
    await answer(store, first)
    const single = await answerOne(store, 'm3')
    const one = upTo({ bytesMax: 0, limit: 1 })
    expect(await store.prune(one)).toMatchObject({ contents: 1 })
    expect(await store.inbox.get(single)).toMatchObject({ raw: null, message: null })
    await store.inbox.start(second, `t${second}`, STARTS_MAX, inbound('m2'))
    await answer(store, second)
    for (const contents of [1, 0]) expect(await store.prune(one)).toMatchObject({ contents })
    for (const number of [first, second]) expect(await store.inbox.get(number)).toMatchObject({ raw: null, message: null })
  },

  'drops the body of a request as it drops a message': async ({ store }) => {
    const [number = 0] = (await store.inbox.keep(bodyArrival('m1'))) as number[]
    await store.inbox.start(number, 't', STARTS_MAX, inbound('m1'))
    await store.turns.finish(turnEnd('t', { delivery: { inbox: number, replies: [] } }))
    expect(await store.prune(upTo({ bytesMax: 0 }))).toMatchObject({ contents: 1 })
    expect(await store.inbox.get(number)).toMatchObject({ state: 'done', raw: null, message: null })
    expect(await store.inbox.replay(number)).toBe(false)
  },

  'one call drops everything that may be dropped': async ({ store }) => {
    const numbers = (await store.inbox.keep(arrival(Array.from({ length: 700 }, (_, at) => `m${at}`)))) as number[]
    await Promise.all(numbers.map((number) => store.inbox.markDead(number, { error: 'e', atMs: 2_000 })))
    const all = upTo({ endedBeforeMs: 9_000, idsBeforeMs: 9_000, limit: 600 })
    expect(await store.prune(all)).toEqual({ ...NOTHING, messages: 600 })
    expect(await store.prune(all)).toEqual({ ...NOTHING, messages: 100 })
    expect(await store.inbox.list({ limit: 10 })).toEqual([])
  },

  'drops the content of a message that ended late': async ({ store }) => {
    const slow = await keepOne(store, 'slow')
    for (const id of ['m1', 'm2']) await answerOne(store, id)
    await store.prune(upTo({ bytesMax: 0 }))
    await store.inbox.markDead(slow, { error: 'e', atMs: 1 })
    await store.inbox.replay(slow)
    await store.inbox.start(slow, 't', STARTS_MAX)
    await store.turns.finish(turnEnd('t', { delivery: { inbox: slow, replies: [] } }))
    expect(await store.prune(upTo({ bytesMax: 0 }))).toMatchObject({ contents: 1 })
    expect(await store.inbox.get(slow)).toMatchObject({ state: 'done', message: null })
  },

  'drops at most the given number of rows, oldest first': async ({ store }) => {
    const numbers: number[] = []
    for (const at of [1, 2, 3, 4, 5]) numbers.push(await answerOne(store, `m${at}`, [], { endedAtMs: 2_000 + at }))
    const left = async () => (await store.inbox.list({ limit: 10 })).map(({ number }) => number).reverse()
    await store.prune(upTo({ bytesMax: 0, limit: 2 }))
    const contents = await Promise.all(numbers.map(async (number) => (await store.inbox.get(number))?.message))
    expect(contents.map((message) => message === null)).toEqual([true, true, false, false, false])
    const all = upTo({ endedBeforeMs: 9_000, idsBeforeMs: 9_000, limit: 2 })
    for (const rest of [3, 1, 0]) {
      await store.prune(all)
      expect(await left()).toEqual(numbers.slice(5 - rest))
    }
    expect(await store.prune(all)).toEqual(NOTHING)
  },

  'drops expired nonces only': async ({ store }) => {
    const nonce = { value: 'nonce', untilMs: 2_000 }
    await store.inbox.keep(arrival('m1', { nonce }))
    await store.prune(upTo({ nowMs: 1_999 }))
    expect(await store.inbox.keep(arrival('m2', { nonce, receivedAtMs: 1_999 }))).toBe('replayed')
    await store.prune(upTo({ nowMs: 2_000 }))
    expect(await store.inbox.keep(arrival('m2', { nonce }))).toEqual([expect.any(Number)])
  },

  'drops old acknowledged approvals and keeps unfinished ones of any age': async ({ store, restart }) => {
    const { approvals, outbox } = store
    for (const runId of ['settled', 'late', 'decided', 'pending']) await approvals.open(asked(runId), [reply(runId)])
    for (const runId of ['settled', 'late', 'decided']) await approvals.decide({ runId, stepId: 'step-1' }, decision('approved'))
    for (const runId of ['settled', 'late']) await approvals.acknowledge({ runId, stepId: 'step-1' }, runId === 'late' ? 4_000 : 3_000, [])
    for (const { number } of await outbox.list({ limit: 10 })) {
      await outbox.start(number)
      await outbox.sent(number, { providerId: `p${number}`, atMs: 2_000 })
    }
    expect(await store.prune(upTo({ endedBeforeMs: 2_000 }))).toEqual(NOTHING)
    expect(await store.prune(upTo({ endedBeforeMs: 4_000 }))).toEqual({ ...NOTHING, approvals: 1, replies: 4 })
    const again = await restart()
    expect(await again.outbox.list({ limit: 10 })).toEqual([])
    expect((await again.approvals.list({ limit: 10 })).map(({ runId }) => runId)).toEqual(['pending', 'decided', 'late'])
    for (const { prompts } of await (await own(again)).approvals.unfinished({ after: null, limit: 10 }))
      expect(prompts).toMatchObject([{ providerId: expect.any(String) }])
    expect(await again.approvals.open(asked('settled'), [reply('again')])).toMatchObject({ opened: true, approval: { state: 'pending' } })
    expect(await again.check()).toEqual([])
  },
}

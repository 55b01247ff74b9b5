/** Rules for the work that the holder of a lease finds: the work in its shards, and nothing else. */
import { SHARDS, type ShardRange, shardOf, shardOfConversation, shardOfSession, shardsLease } from '@sluice/sdk'
import { expect } from 'vitest'
import { asked, decision } from './approval-samples.ts'
import { arrival, inbound, keepOne, reply, STARTS_MAX } from './delivery-samples.ts'
import { queuedTurn, turnEnd } from './samples.ts'
import { ended, sopRun, startRuns } from './sop-samples.ts'
import { own, type StoreBench, type StoreRules } from './store-bench.ts'

const LOWER: ShardRange = { from: 0, to: SHARDS / 2 - 1 }
const UPPER: ShardRange = { from: SHARDS / 2, to: SHARDS - 1 }
const PAGE = { after: 0, limit: 100 }
const NAMES = Array.from({ length: 12 }, (_, at) => `name-${at}`)

const sessionIn = (conversation: string, thread = ''): string => `channel:roomchat/bot/${conversation}${thread}/ann`
const isLower = (shard: number): boolean => shard <= LOWER.to

/** Splits the names by their shard, which must put some on each side. */
function split(names: readonly string[], shardOfName: (name: string) => number): readonly (readonly string[])[] {
  const sides = [names.filter((name) => isLower(shardOfName(name))), names.filter((name) => !isLower(shardOfName(name)))]
  for (const side of sides) expect(side.length).toBeGreaterThan(0)
  return sides
}

/** Opens two processes with half of the shards each. */
const halves = async ({ store, otherProcess }: StoreBench) =>
  Promise.all([own(store, shardsLease(LOWER)), own(await otherProcess(), shardsLease(UPPER))])

export const ownedWorkRules: StoreRules = {
  'lists waiting messages by the shard of their session': async (bench) => {
    for (const name of NAMES) {
      const messages = [{ message: inbound(name), session: sessionIn(name) }]
      await bench.store.inbox.keep(arrival([], { messages }))
    }
    const sides = split(NAMES, (name) => shardOfSession(sessionIn(name)))
    for (const [at, { inbox }] of (await halves(bench)).entries()) {
      const names = (await inbox.waiting(PAGE)).map(({ lane }) => lane.split('/')[2])
      expect(names).toEqual(sides[at])
      const [first] = await inbox.waiting({ after: 0, limit: 1 })
      expect((await inbox.waiting({ after: first?.number ?? 0, limit: 100 })).map(({ lane }) => lane.split('/')[2])).toEqual(names.slice(1))
    }
  },

  'lists what waits for other channels than those that are named, with the time of its receipt or last replay': async (bench) => {
    const { store } = bench
    for (const channel of ['roomchat', 'bizchat', 'irc']) {
      await keepOne(store, `m ${channel}`, { channel })
      await store.outbox.add([reply(`r ${channel}`, { channel })])
    }
    const { inbox, outbox } = await own(store)
    const [first, last] = await inbox.waiting({ ...PAGE, except: ['bizchat', 'other'] })
    expect([first, last]).toMatchObject([
      { channel: 'roomchat', sinceMs: 1_000 },
      { channel: 'irc', sinceMs: 1_000 },
    ])
    expect(await inbox.waiting({ after: first?.number ?? 0, limit: 1, except: ['bizchat'] })).toEqual([last])
    expect(await inbox.waiting({ ...PAGE, except: ['roomchat', 'bizchat', 'irc'] })).toEqual([])
    const replies = await outbox.waiting({ ...PAGE, except: ['roomchat'] })
    expect(replies.map(({ channel, sinceMs }) => [channel, sinceMs])).toEqual([
      ['bizchat', 2_000],
      ['irc', 2_000],
    ])
    await inbox.markDead(last?.number ?? 0, { error: 'e', atMs: 1 })
    await inbox.replay(last?.number ?? 0)
    const number = replies[1]?.number ?? 0
    await outbox.giveUp(number, { state: 'dead', error: 'e', atMs: 1 })
    await outbox.replay(number)
    const sinceMs = bench.clock.nowMs()
    expect(await inbox.waiting({ ...PAGE, except: ['roomchat', 'bizchat'] })).toMatchObject([{ channel: 'irc', sinceMs }])
    expect(await outbox.waiting({ ...PAGE, except: ['roomchat', 'bizchat'] })).toMatchObject([{ channel: 'irc', sinceMs }])
  },

  'lists and recovers replies by the shard of their conversation': async (bench) => {
    const address = (to: string) => ({ channel: 'roomchat', account: 'bot', to: { to } })
    const add = async (name: string) => (await bench.store.outbox.add([reply(name, address(name))]))[0] ?? 0
    const numbers = new Map<number, string>()
    for (const name of NAMES) {
      numbers.set(await add(name), `waiting ${name}`)
      const sending = await add(name)
      await bench.store.outbox.start(sending)
      numbers.set(sending, `sending ${name}`)
    }
    const sides = split(NAMES, (name) => shardOfConversation(address(name)))
    for (const [at, { outbox }] of (await halves(bench)).entries()) {
      const ambiguous = await outbox.recover({ repeatable: [], atMs: 1 })
      expect(ambiguous.map((number) => numbers.get(number))).toEqual(sides[at]?.map((name) => `sending ${name}`))
      const waiting = (await outbox.waiting(PAGE)).map(({ number }) => numbers.get(number))
      expect(waiting).toEqual(sides[at]?.map((name) => `waiting ${name}`))
    }
  },

  'makes interrupted edits due only in the shards of the lease': async (bench) => {
    const numbers = await bench.store.outbox.add(NAMES.map((name) => reply(name, { to: { to: name }, extras: { edits: 'p1' } })))
    for (const number of numbers) await bench.store.outbox.start(number)
    const [lower] = await halves(bench)
    expect(await lower.outbox.recover({ repeatable: [], atMs: 1 })).toEqual([])
    const [due = []] = split(NAMES, (name) => shardOfConversation({ channel: 'roomchat', account: 'bot', to: { to: name } }))
    const failed = (await bench.store.outbox.list({ limit: 100, state: 'failed' })).map(({ to }) => to.to).reverse()
    expect(failed).toEqual(due)
  },

  'lists unfinished turns by the shard of their session, or of their id without one': async (bench) => {
    for (const name of NAMES) await bench.store.turns.enqueue(queuedTurn(`in ${name}`, { sessionId: sessionIn(name) }))
    for (const name of NAMES) await bench.store.turns.enqueue(queuedTurn(name, { sessionId: null, createdAtMs: 2_000 }))
    const inSessions = split(NAMES, (name) => shardOfSession(sessionIn(name)))
    const alone = split(NAMES, shardOf)
    for (const [at, { turns }] of (await halves(bench)).entries()) {
      const listed = (await turns.unfinished(100)).map(({ id }) => id)
      const expected = [...(inSessions[at] ?? []).map((name) => `in ${name}`), ...(alone[at] ?? [])]
      expect(listed.sort()).toEqual(expected.sort())
    }
  },

  'lists unsettled approvals by the shard of their run, those of tool calls by the shard of their turn': async (bench) => {
    const { approvals, turns } = bench.store
    for (const name of NAMES) {
      await approvals.open(asked(name, { gate: 'sop' }), [])
      await turns.enqueue(queuedTurn(`turn ${name}`, { sessionId: sessionIn(name) }))
      await approvals.open(asked(`turn ${name}`, { gate: 'tool' }), [])
      await approvals.decide({ runId: `turn ${name}`, stepId: 'step-1' }, decision('approved'))
    }
    const runs = split(NAMES, shardOf)
    const calls = split(NAMES, (name) => shardOfSession(sessionIn(name)))
    for (const [at, owned] of (await halves(bench)).entries()) {
      const listed = async (decided?: true) =>
        (await owned.approvals.unfinished({ after: null, limit: 100, ...(decided && { decided }) })).map(({ runId }) => runId)
      const ofTurns = (calls[at] ?? []).map((name) => `turn ${name}`)
      expect((await listed()).sort()).toEqual([...(runs[at] ?? []), ...ofTurns].sort())
      expect(await listed(true)).toEqual(ofTurns)
    }
  },

  'lists unfinished runs by the shard of their id': async (bench) => {
    await startRuns(bench.store, NAMES)
    await bench.store.sops.advance(sopRun('name-0'), ended(sopRun('name-0')), [])
    const sides = split(NAMES, shardOf)
    for (const [at, { sops }] of (await halves(bench)).entries()) {
      const expected = (sides[at] ?? []).filter((name) => name !== 'name-0')
      expect((await sops.unfinished({ after: null, limit: 100 })).map(({ id }) => id)).toEqual(expected)
      const [first = ''] = expected
      expect((await sops.unfinished({ after: first, limit: 100 })).map(({ id }) => id)).toEqual(expected.slice(1))
    }
  },

  'a lease without shards finds no work': async ({ store }) => {
    const number = await keepOne(store, 'm1')
    await store.inbox.start(number, 'turn of m1', STARTS_MAX)
    const [sending = 0] = await store.outbox.add([reply('a'), reply('b')])
    await store.outbox.start(sending)
    await store.turns.enqueue(queuedTurn('t1'))
    await store.turns.requestAbort('t1')
    await store.approvals.open(asked('r1'), [])
    await startRuns(store, ['r1'])
    const { inbox, outbox, turns, approvals, sops } = await own(store, 'leader/cron')
    const found = [
      await inbox.waiting(PAGE),
      await outbox.waiting(PAGE),
      await outbox.recover({ repeatable: [], atMs: 1 }),
      await turns.unfinished(100),
      await turns.abortsRequested(),
      await approvals.unfinished({ after: null, limit: 100 }),
      await sops.unfinished({ after: null, limit: 100 }),
    ]
    expect(found.flat()).toEqual([])
    expect(await store.outbox.get(sending)).toMatchObject({ state: 'sending' })
  },

  'the holder of a turn finds the request of another process to abort it': async (bench) => {
    const [lower, upper] = await halves(bench)
    const [[mine = ''] = []] = split(NAMES, shardOf)
    await lower.turns.enqueue(queuedTurn(mine, { sessionId: null, owner: 'ann' }))
    expect(await upper.turns.requestAbort(mine, 'bob')).toBe(false)
    expect(await lower.turns.abortsRequested()).toEqual([])
    expect(await upper.turns.requestAbort(mine, 'ann')).toBe(true)
    expect(await upper.turns.requestAbort(mine)).toBe(true)
    expect([await lower.turns.abortsRequested(), await upper.turns.abortsRequested()]).toEqual([[mine], []])
  },

  'a request to abort survives a restart and ends with its turn': async ({ store, restart }) => {
    const number = await keepOne(store, 'm1')
    await store.inbox.start(number, 't1', STARTS_MAX)
    await store.turns.enqueue(queuedTurn('t2'))
    for (const id of ['t1', 't2']) expect(await store.turns.requestAbort(id)).toBe(true)
    const again = await restart()
    const { turns, inbox } = await own(again)
    expect([...(await turns.abortsRequested())].sort()).toEqual(['t1', 't2'])
    await inbox.done(number, 1)
    await turns.finish(turnEnd('t2', { status: 'aborted' }))
    expect(await turns.abortsRequested()).toEqual([])
    for (const id of ['t1', 't2', 'unknown']) expect(await again.turns.requestAbort(id)).toBe(false)
  },
}

/** Rules for leases and the fence: once a lease is taken over, its earlier holder writes nothing more. */
import { isLeaseLost, type LeaseName, type Store } from '@sluice/sdk'
import { expect } from 'vitest'
import { asked, decision } from './approval-samples.ts'
import { arrival, inbound, keepOne, reply, STARTS_MAX } from './delivery-samples.ts'
import { queuedTurn, turnEnd, user } from './samples.ts'
import { ended, sopRun, startOf } from './sop-samples.ts'
import { own, type StoreRules } from './store-bench.ts'

/** Returns the numbers of the messages that were stored. */
const numbersOf = (kept: 'replayed' | readonly (number | null)[]): number[] =>
  kept === 'replayed' ? [] : kept.filter((number) => number !== null)

/** Expects that this write is refused because the lease is lost. */
async function expectLost(written: Promise<unknown>): Promise<void> {
  const error = await written.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(isLeaseLost(error)).toBe(true)
  expect(error).toMatchObject({ code: 'unavailable' })
}

export const leaseRules: StoreRules = {
  'grants a lease and names its shards': async ({ store }) => {
    const shards = await store.leases.acquire('shards/3-9')
    expect(shards).toMatchObject({ name: 'shards/3-9', shards: { from: 3, to: 9 } })
    expect([shards.mayAct(), shards.lost.aborted]).toEqual([true, false])
    for (const name of ['leader/cron', 'leader/prune', 'channel/discord/main', 'session/a/b'] as const)
      expect(await store.leases.acquire(name)).toMatchObject({ name, shards: null })
    for (const name of ['shards/9-3', 'shards/0-256', 'shards/-1-2', 'shards/0'] as LeaseName[])
      await expect(store.leases.acquire(name)).rejects.toThrow(RangeError)
  },

  'epochs grow with each holder and are never used twice': async ({ store, otherProcess, restart }) => {
    const first = await store.leases.acquire('leader/cron')
    const second = await (await otherProcess()).leases.acquire('leader/cron')
    expect(second.epoch).toBeGreaterThan(first.epoch)
    await second.release()
    const third = await (await restart()).leases.acquire('leader/cron')
    expect(third.epoch).toBeGreaterThan(second.epoch)
  },

  'a lease does not touch leases of other names': async ({ store, otherProcess }) => {
    const kept = await Promise.all(
      (['shards/0-127', 'leader/cron', 'session/a', 'channel/discord/main'] as const).map((name) => store.leases.acquire(name)),
    )
    const other = await otherProcess()
    for (const name of ['shards/128-255', 'leader/prune', 'session/b', 'channel/discord/second'] as const) await other.leases.acquire(name)
    for (const lease of kept) {
      await store.under(lease).keyValue('feature').set(lease.name, 1)
      expect(lease.mayAct()).toBe(true)
    }
  },

  'a range of shards takes over every lease with one of its shards': async ({ store, otherProcess }) => {
    const leases = await Promise.all((['shards/0-9', 'shards/10-19', 'shards/20-29'] as const).map((name) => store.leases.acquire(name)))
    await (await otherProcess()).leases.acquire('shards/9-15')
    expect(leases.map((lease) => lease.mayAct())).toEqual([false, false, true])
  },

  'offers recovery only under a lease': async ({ store }) => {
    const { inbox, outbox, turns, approvals, sops } = store
    const recovery = { inbox: ['waiting'], outbox: ['waiting', 'recover'], turns: ['unfinished', 'abortsRequested'] }
    const groups = Object.entries({ ...recovery, approvals: ['unfinished'], sops: ['unfinished'] })
    const unowned: Readonly<Record<string, object>> = { inbox, outbox, turns, approvals, sops }
    const owned: Readonly<Record<string, object>> = { ...(await own(store)) }
    for (const [group, methods] of groups) {
      for (const method of methods) {
        expect(unowned[group]).not.toHaveProperty(method)
        expect(owned[group]).toHaveProperty(method)
      }
    }
  },

  'an earlier holder knows of its loss before its next effect': async ({ store, otherProcess }) => {
    const lease = await store.leases.acquire('channel/discord/main')
    const later = await (await otherProcess()).leases.acquire('channel/discord/main')
    expect([lease.mayAct(), lease.lost.aborted]).toEqual([false, true])
    expect([later.mayAct(), later.lost.aborted]).toEqual([true, false])
  },

  'a holder that is taken over within its own process loses the lease at once': async ({ store }) => {
    const lease = await store.leases.acquire('leader/cron')
    const later = await store.leases.acquire('leader/cron')
    expect([lease.lost.aborted, later.lost.aborted]).toEqual([true, false])
    await expectLost(store.under(lease).keyValue('feature').set('a', 1))
    await store.under(later).keyValue('feature').set('a', 2)
  },

  'the first refused write reports the loss': async ({ store, otherProcess }) => {
    const owned = await own(store)
    await own(await otherProcess())
    await expectLost(owned.keyValue('feature').set('a', 1))
    expect(owned.lease.lost.aborted).toBe(true)
  },

  'every write of an earlier holder is refused and nothing of it remains': async ({ store, otherProcess }) => {
    const number = await keepOne(store, 'm1')
    const [reply1 = 0, reply2 = 0] = await store.outbox.add([reply('one'), reply('two')])
    await store.outbox.start(reply2)
    await store.turns.enqueue(queuedTurn('t1'))
    await store.turns.finish(turnEnd('t0', { sessionId: 'old' }))
    await store.approvals.open(asked('r1'), [])
    await store.approvals.open(asked('r2'), [])
    await store.approvals.decide({ runId: 'r2', stepId: 'step-1' }, decision('approved'))
    await store.sops.start([startOf(sopRun('r1'))], { atMs: 1_000 })
    await store.keyValue('feature').set('a', 1)
    const owned = await own(store)
    const other = await otherProcess()
    await own(other)
    const before = await snapshotOf(other)
    const key = { runId: 'r1', stepId: 'step-1' }
    const writes: Record<string, () => Promise<unknown>> = {
      keep: () => owned.inbox.keep(arrival('m2')),
      'start of a message': () => owned.inbox.start(number, 't2', STARTS_MAX),
      'retry of a message': () => owned.inbox.retry(number, { error: 'e', atMs: 1 }),
      'release of a message': () => owned.inbox.release(number),
      'end of a message': () => owned.inbox.done(number, 1, [reply('late')]),
      draft: () => owned.inbox.draft(number, 'p'),
      'files that were read': () => owned.inbox.keepRead(number, 't1', inbound('m1')),
      'dead letter': () => owned.inbox.markDead(number, { error: 'e', atMs: 1 }),
      'new reply': () => owned.outbox.add([reply('late')]),
      'start of a reply': () => owned.outbox.start(reply1),
      'sent reply': () => owned.outbox.sent(reply2, { providerId: 'p', atMs: 1 }),
      'retry of a reply': () => owned.outbox.retry(reply2, { error: 'e', atMs: 1 }),
      'given up reply': () => owned.outbox.giveUp(reply2, { state: 'dead', error: 'e', atMs: 1 }),
      'recovery of replies': () => owned.outbox.recover({ repeatable: [], atMs: 1 }),
      enqueue: () => owned.turns.enqueue(queuedTurn('t3')),
      'start of a turn': () => owned.turns.start('t1'),
      checkpoint: () => owned.turns.checkpoint('t1', []),
      'end of a stored turn': () => owned.turns.finish(turnEnd('t1', { delivery: { inbox: number, replies: [reply('late')] } })),
      'end of a new turn': () => owned.turns.finish(turnEnd('t4')),
      'request to abort': () => owned.turns.requestAbort('t1'),
      'new approval': () => owned.approvals.open(asked('r3'), [reply('late')]),
      decision: () => owned.approvals.decide(key, decision('approved')),
      'settled approval': () => owned.approvals.acknowledge({ ...key, runId: 'r2' }, 1, [reply('late')]),
      'start of a run': () => owned.sops.start([startOf(sopRun('r2'))], { atMs: 1 }),
      'step of a run': () => owned.sops.advance(sopRun('r1'), ended(sopRun('r1')), []),
      'audit record': () => owned.sops.record([]),
      rename: () => owned.sessions.rename('old', 'new name'),
      erase: () => owned.sessions.erase('old', { atMs: 1, by: 'test' }),
      'new value': () => owned.keyValue('feature').set('b', 1),
      'swapped value': () => owned.keyValue('feature').swap('a', 1, 2),
      'values of one commit': () => owned.keyValue('feature').setAll(new Map([['c', 1]])),
      'deleted value': () => owned.keyValue('feature').delete('a'),
    }
    for (const write of Object.values(writes)) await expectLost(write())
    expect(await snapshotOf(other)).toEqual(before)
  },

  'refused writes do not affect the other writes of a commit': async ({ store, otherProcess }) => {
    const [lost, held] = [await own(store, 'leader/cron'), await own(store, 'leader/prune')]
    await own(await otherProcess(), 'leader/cron')
    const [first, refused, last] = await Promise.allSettled([
      held.keyValue('feature').set('held', 1),
      lost.keyValue('feature').set('lost', 1),
      store.keyValue('feature').set('anyone', 1),
    ])
    expect([first.status, refused.status, last.status]).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect((await store.keyValue('feature').list('', 10)).map(({ key }) => key)).toEqual(['anyone', 'held'])
  },

  'intake by any process goes on after a takeover': async ({ store, otherProcess }) => {
    const owned = await own(store)
    const later = await own(await otherProcess())
    const number = await keepOne(store, 'm1')
    expect((await later.inbox.waiting({ after: 0, limit: 10 })).map((row) => row.number)).toEqual([number])
    await expectLost(owned.inbox.start(number, 't1', STARTS_MAX))
    expect(await later.inbox.start(number, 't1', STARTS_MAX)).toMatchObject({ turnId: 't1' })
  },

  'a holder that gets its lease back reads what others wrote meanwhile': async ({ store, otherProcess }) => {
    const first = await own(store)
    await first.turns.finish(turnEnd('t1', { messages: [user('one')] }))
    expect(await first.sessions.history('room', 10)).toEqual([user('one')])
    const meanwhile = await own(await otherProcess())
    await meanwhile.turns.finish(turnEnd('t2', { messages: [user('two')] }))
    const [number = 0] = numbersOf(await meanwhile.inbox.keep(arrival('m1')))
    await meanwhile.inbox.done(number, 1)
    const again = await own(store)
    expect(await again.sessions.history('room', 10)).toEqual([user('one'), user('two')])
    await again.turns.finish(turnEnd('t3', { messages: [user('three')] }))
    expect(await again.sessions.history('room', 10)).toEqual([user('one'), user('two'), user('three')])
    expect(await again.inbox.keep(arrival('m1'))).toEqual([null])
  },

  'release ends a lease after the writes requested before it': async ({ store }) => {
    const owned = await own(store)
    const written = owned.keyValue('feature').set('a', 1)
    const released = owned.lease.release()
    expect([owned.lease.mayAct(), owned.lease.lost.aborted]).toEqual([false, true])
    const late = owned.keyValue('feature').set('a', 2)
    await Promise.all([written, released, expectLost(late), owned.lease.release()])
    expect(await store.keyValue('feature').get('a')).toBe(1)
  },

  'an aborted acquire takes nothing': async ({ store, otherProcess }) => {
    const held = await (await otherProcess()).leases.acquire('leader/cron')
    const reason = new Error('stop')
    await expect(store.leases.acquire('leader/cron', AbortSignal.abort(reason))).rejects.toBe(reason)
    expect(held.mayAct()).toBe(true)
  },

  'the same lease gets the same store, and a lease of another store is refused': async ({ store, otherProcess }) => {
    const lease = await store.leases.acquire('leader/cron')
    expect(store.under(lease)).toBe(store.under(lease))
    const other = await otherProcess()
    expect(() => other.under(lease)).toThrow('not granted by this store')
  },

  'a lease of a closed store may not act': async ({ store }) => {
    const { lease } = await own(store)
    await store.close()
    expect(lease.mayAct()).toBe(false)
    await expect(store.leases.acquire('leader/cron')).rejects.toMatchObject({ code: 'unavailable' })
  },
}

/** Reads everything that the writes of the rule above could change. */
async function snapshotOf(store: Store): Promise<unknown> {
  const { inbox, outbox, turns, approvals, sops, sessions } = store
  const page = { limit: 100 }
  return {
    messages: await Promise.all((await inbox.list(page)).map(({ number }) => inbox.get(number))),
    replies: await outbox.list(page),
    turns: await Promise.all(['t0', 't1', 't2', 't3', 't4'].map((id) => turns.get(id))),
    approvals: await approvals.list(page),
    runs: await sops.runs(page),
    audit: await sops.audit(page),
    sessions: await sessions.list(page),
    history: await sessions.history('old', 10),
    values: await store.keyValue('feature').list('', 10),
  }
}

/** Rules for runs that a limit holds back. */
import { AppError, type SopRun, type SopStart, type Store } from '@sluice/sdk'
import { expect } from 'vitest'
import { keepOne } from './delivery-samples.ts'
import { audited, ended, sopRun, startOf, startRuns } from './sop-samples.ts'
import { own, type StoreRules } from './store-bench.ts'

const ONE: Partial<SopStart['limits']> = { concurrentMax: 1, waitingMax: 2 }
const LIMIT = 'too many runs of this procedure (max_concurrent = 1)'

const fire = (
  { sops }: Store,
  id: string,
  part: Partial<SopRun> = {},
  limits = ONE,
  about: Partial<Parameters<typeof sops.start>[1]> = {},
) => sops.start([startOf(sopRun(id, part), limits)], { atMs: 1_000, ...about })
const statusesOf = async (store: Store): Promise<unknown[]> => (await store.sops.runs({ limit: 100 })).map(({ id, status }) => [id, status])
const waitingIds = async ({ sops }: Store): Promise<string[]> => (await sops.waiting()).map(({ id }) => id)
const heldRun = async ({ sops }: Store, id: string): Promise<SopRun> => {
  const run = await sops.get(id)
  if (run?.status !== 'waiting') throw new Error(`the run ${id} is ${run?.status}`)
  return run
}

/** Lets a waiting run begin, as far as the limits allow. */
const begin = async (store: Store, id: string, limits: Partial<SopStart['limits']> = ONE, atMs = 5_000) =>
  beginAs(store, await heldRun(store, id), limits, atMs)

function beginAs(store: Store, before: SopRun, limits: Partial<SopStart['limits']> = ONE, atMs = 5_000) {
  const { id } = before
  const after: SopRun = { ...before, status: 'running', reason: null, startedAtMs: atMs }
  const audit = [audited('run_started', { sop: before.sop, run: id })]
  return store.sops.begin({ before, after, audit, limits: startOf(before, limits).limits }, atMs)
}

export const sopWaitingRules: StoreRules = {
  'a run that a limit holds back is stored with its event, and another process sees it': async ({ store, otherProcess, restart }) => {
    await fire(store, 'r1')
    const inbox = await keepOne(store, 'm1')
    expect(await fire(store, 'r2', {}, ONE, { key: 'event', inbox })).toEqual([
      { sop: 'deploy', status: 'waiting', runId: 'r2', reason: LIMIT },
    ])
    const other = await otherProcess()
    expect(await other.sops.waiting()).toEqual([{ id: 'r2', sop: 'deploy', sinceMs: 1_000 }])
    const again = await restart()
    expect(await again.sops.get('r2')).toEqual(sopRun('r2', { status: 'waiting', reason: LIMIT }))
    expect(await again.sops.waiting()).toEqual([{ id: 'r2', sop: 'deploy', sinceMs: 1_000 }])
    expect(await again.inbox.get(inbox)).toMatchObject({ state: 'done' })
    expect((await again.sops.audit({ limit: 10, run: 'r2' })).map(({ kind, reason }) => [kind, reason])).toEqual([['run_waiting', LIMIT]])
    expect(await fire(again, 'r3', {}, ONE, { key: 'event' })).toMatchObject([{ status: 'waiting', runId: 'r2' }])
  },

  'a waiting run is unfinished but not active, and no process carries it out': async ({ store }) => {
    await fire(store, 'r1')
    await fire(store, 'r2')
    expect(await store.sops.activeCounts()).toEqual(new Map([['deploy', 1]]))
    expect((await store.sops.runs({ limit: 10, active: true })).map(({ id }) => id)).toEqual(['r2', 'r1'])
    expect((await store.sops.runs({ limit: 10, status: 'waiting' })).map(({ id }) => id)).toEqual(['r2'])
    expect((await (await own(store)).sops.unfinished({ after: null, limit: 10 })).map(({ id }) => id)).toEqual(['r1'])
  },

  'a waiting run begins when a slot is free, and once': async ({ store, otherProcess }) => {
    await fire(store, 'r1')
    await fire(store, 'r2')
    expect(await begin(store, 'r2')).toEqual({ inMs: null })
    await store.sops.advance(sopRun('r1'), ended(sopRun('r1')), [])
    const other = await otherProcess()
    const before = await heldRun(store, 'r2')
    const results = await Promise.all([beginAs(store, before), beginAs(other, before)])
    expect(results.filter((result) => result === 'begun')).toHaveLength(1)
    expect(await statusesOf(store)).toEqual([
      ['r2', 'running'],
      ['r1', 'completed'],
    ])
    expect(await waitingIds(store)).toEqual([])
    expect((await store.sops.audit({ limit: 10, run: 'r2' })).map(({ kind }) => kind)).toEqual(['run_waiting', 'run_started'])
    expect((await (await own(store)).sops.unfinished({ after: null, limit: 10 })).map(({ id }) => id)).toEqual(['r2'])
  },

  'a run that changed since it was read does not begin': async ({ store }) => {
    await fire(store, 'r1')
    await fire(store, 'r2')
    const before = await heldRun(store, 'r2')
    await store.sops.advance(before, { ...before, status: 'cancelled', endedAtMs: 2_000 }, [audited('run_cancelled', { run: 'r2' })])
    await store.sops.advance(sopRun('r1'), ended(sopRun('r1')), [])
    const start = { before, after: sopRun('r2'), audit: [audited('run_started', { run: 'r2' })], limits: startOf(before, ONE).limits }
    expect(await store.sops.begin(start, 3_000)).toBe('changed')
    expect(await store.sops.audit({ limit: 10, run: 'r2' })).toHaveLength(2)
    expect(await waitingIds(store)).toEqual([])
  },

  'waiting runs are listed by priority and then in the order in which they arrived': async ({ store }) => {
    const limits = { concurrentMax: 1, waitingMax: 9, totalMax: 1 }
    await fire(store, 'busy', { sop: 'busy' }, limits)
    for (const [id, priority] of Object.entries({ a: 'normal', b: 'low', c: 'critical', d: 'high', e: 'critical', f: 'normal' } as const))
      await fire(store, id, { sop: `sop ${id}`, priority }, limits)
    expect(await waitingIds(store)).toEqual(['c', 'e', 'd', 'a', 'f', 'b'])
  },

  'a message whose every run is skipped is not ended': async ({ store }) => {
    const inbox = await keepOne(store, 'm1')
    const off = { concurrentMax: 0 }
    expect(await fire(store, 'r1', {}, off, { inbox })).toMatchObject([{ status: 'skipped' }])
    expect(await store.inbox.get(inbox)).toMatchObject({ state: 'pending' })
    expect(await fire(store, 'r2', {}, ONE, { inbox })).toMatchObject([{ status: 'started' }])
    expect(await store.inbox.get(inbox)).toMatchObject({ state: 'done' })
  },

  'an event waits behind earlier runs of its procedure, even if a slot is free': async ({ store }) => {
    await fire(store, 'r1')
    await fire(store, 'r2')
    await store.sops.advance(sopRun('r1'), ended(sopRun('r1')), [])
    expect(await fire(store, 'r3')).toMatchObject([{ status: 'waiting', runId: 'r3', reason: 'earlier runs of this procedure wait' }])
  },

  'an event is not taken when as many runs wait as may, and nothing of it is stored for a sender that repeats it': async ({ store }) => {
    for (const id of ['r1', 'r2', 'r3']) await fire(store, id)
    const inbox = await keepOne(store, 'm1')
    const about = { key: 'event', inbox, idempotency: { scope: 's', key: 'k' } }
    await store.idempotency.claim(about.idempotency, { ttlMs: 300_000, keysMax: 100 })
    const refused = fire(store, 'r4', {}, ONE, { ...about, repeats: true })
    await expect(refused).rejects.toBeInstanceOf(AppError)
    await expect(refused).rejects.toMatchObject({ code: 'unavailable', retryAfterSecs: expect.any(Number) })
    expect(await store.sops.audit({ limit: 10 })).toHaveLength(3)
    expect(await store.inbox.get(inbox)).toMatchObject({ state: 'pending' })
    expect(await store.idempotency.claim(about.idempotency, { ttlMs: 300_000, keysMax: 100 })).toBe('claimed')
    expect(await fire(store, 'r5', {}, ONE, { key: 'event' })).toEqual([
      { sop: 'deploy', status: 'skipped', reason: `${LIMIT}, and the queue is full (max_waiting = 2)` },
    ])
  },

  'an event that another procedure takes is recorded as skipped for the one without room': async ({ store }) => {
    for (const id of ['r1', 'r2', 'r3']) await fire(store, id)
    const starts = [startOf(sopRun('r4'), ONE), startOf(sopRun('r5', { sop: 'other' }), ONE)]
    const dispatched = await store.sops.start(starts, { atMs: 1_000, repeats: true })
    expect(dispatched.map(({ sop, status }) => [sop, status])).toEqual([
      ['deploy', 'skipped'],
      ['other', 'started'],
    ])
  },

  'of a trigger that holds one run the newest event waits': async ({ store }) => {
    const event = (payload: string, topic = '0 9 * * *') => ({ ...sopRun('x').event, source: 'cron' as const, topic, payload, by: 'clock' })
    const tick = (id: string, payload: string, topic?: string, atMs = 1_000) =>
      store.sops.start([startOf(sopRun(id, { event: event(payload, topic) }), { ...ONE, waitingMax: 1 }, true)], { atMs, key: id })
    expect(await tick('r1', '1')).toMatchObject([{ status: 'started' }])
    expect(await tick('r2', '2')).toMatchObject([{ status: 'waiting', runId: 'r2' }])
    expect(await tick('r3', '3', undefined, 2_000)).toMatchObject([{ status: 'waiting', runId: 'r2' }])
    expect(await store.sops.waiting()).toEqual([{ id: 'r2', sop: 'deploy', sinceMs: 2_000 }])
    expect(await store.sops.get('r2')).toMatchObject({ status: 'waiting', event: { payload: '3' } })
    expect(await store.sops.get('r3')).toBeUndefined()
    expect(await tick('r3', '3')).toMatchObject([{ status: 'waiting', runId: 'r2' }])
    expect((await store.sops.audit({ limit: 10 })).map(({ kind, by }) => [kind, by])).toEqual([
      ['run_started', 'clock'],
      ['run_waiting', 'clock'],
      ['trigger_skipped', 'clock'],
    ])
    expect(await tick('r4', '4', '0 10 * * *')).toMatchObject([{ status: 'skipped' }])
  },

  'a waiting run begins once its procedure has cooled down, and one that never began starts no cooldown': async ({ store }) => {
    const limits = { ...ONE, cooldownMs: 60_000 }
    await fire(store, 'r1', {}, limits)
    await fire(store, 'r2', {}, limits)
    await fire(store, 'r3', {}, limits)
    await store.sops.advance(sopRun('r1'), ended(sopRun('r1'), { endedAtMs: 10_000 }), [])
    expect(await begin(store, 'r2', limits, 30_000)).toEqual({ inMs: 40_000 })
    const before = await heldRun(store, 'r3')
    await store.sops.advance(before, { ...before, status: 'expired', endedAtMs: 69_000 }, [audited('run_expired', { run: 'r3' })])
    expect(await begin(store, 'r2', limits, 70_000)).toBe('begun')
  },

  'a procedure that is switched off takes no event': async ({ store }) => {
    expect(await fire(store, 'r1', {}, { ...ONE, concurrentMax: 0 }, { repeats: true })).toEqual([
      { sop: 'deploy', status: 'skipped', reason: 'the procedure is switched off (max_concurrent = 0)' },
    ])
  },

  'of many events in two processes none is lost, and never more than the limit is active': async ({ store, otherProcess }) => {
    const stores = [store, await otherProcess()]
    const limits = { concurrentMax: 2, waitingMax: 100 }
    const dispatched = await Promise.all(Array.from({ length: 30 }, (_, at) => fire(stores[at % 2] ?? store, `r${at}`, {}, limits)))
    expect(dispatched.flat().filter(({ status }) => status === 'started')).toHaveLength(2)
    expect(await waitingIds(store)).toHaveLength(28)
    for (let rounds = 0; rounds < 15; rounds++) {
      for (const run of await store.sops.runs({ limit: 100, status: 'running' })) await store.sops.advance(run, ended(run), [])
      const ids = await waitingIds(store)
      const begun = await Promise.all(ids.slice(0, 4).map((id, at) => begin(stores[at % 2] ?? store, id, limits)))
      expect(begun.filter((result) => result === 'begun')).toHaveLength(Math.min(2, ids.length))
    }
    expect(new Set((await store.sops.runs({ limit: 100 })).map(({ status }) => status))).toEqual(new Set(['completed']))
    expect(await store.sops.verify()).toMatchObject({ broken: null })
  },

  'a waiting run is never pruned': async ({ store }) => {
    await startRuns(store, ['old'])
    await store.sops.advance(sopRun('old'), ended(sopRun('old')), [])
    await fire(store, 'r1')
    await fire(store, 'r2')
    await store.sops.prune({ finishedMax: 1, keysBeforeMs: 0 })
    expect(await waitingIds(store)).toEqual(['r2'])
  },
}

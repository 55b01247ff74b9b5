/** Rules for starting procedures: limits, repeated events, and what else the start completes. */
import { SOP_ENDED, type SopDispatch, type SopStart, type Store } from '@sluice/sdk'
import { expect } from 'vitest'
import { keepOne, STARTS_MAX } from './delivery-samples.ts'
import { ODD_TEXTS, turnEnd } from './samples.ts'
import { audited, ended, runOnce, sopRun, startOf, startRuns } from './sop-samples.ts'
import { own, type StoreRules } from './store-bench.ts'

const LIMITS = { ttlMs: 300_000, keysMax: 100 }
const key = (name: string) => ({ scope: 'caller /webhook', key: name })

const startedOf = (dispatched: readonly SopDispatch[]): string[] =>
  dispatched.flatMap((one) => (one.status === 'started' ? [one.runId] : []))
const reasonsOf = (dispatched: readonly SopDispatch[]): string[] =>
  dispatched.flatMap((one) => (one.status === 'skipped' ? [one.reason] : []))
const runIds = async ({ sops }: Store): Promise<string[]> => (await sops.runs({ limit: 100 })).map(({ id }) => id)

/** A start of `deploy` under the given limits, at 1,000 ms. */
const start = ({ sops }: Store, id: string, limits: Partial<SopStart['limits']>, atMs = 1_000): Promise<readonly SopDispatch[]> =>
  sops.start([startOf(sopRun(id), limits)], { atMs })

export const sopStartRules: StoreRules = {
  'another process sees a started run and its records': async ({ store, otherProcess }) => {
    const runs = [sopRun('r1'), sopRun('r2', { sop: 'other', event: { ...sopRun('r2').event, payload: ODD_TEXTS.join(' ') } })]
    const dispatched = await store.sops.start(
      runs.map((run) => startOf(run)),
      { atMs: 1_000 },
    )
    expect(dispatched).toEqual([
      { sop: 'deploy', status: 'started', runId: 'r1' },
      { sop: 'other', status: 'started', runId: 'r2' },
    ])
    const { sops } = await otherProcess()
    for (const run of runs) expect(await sops.get(run.id)).toEqual(run)
    expect(await sops.get('r3')).toBeUndefined()
    expect((await sops.audit({ limit: 10 })).map(({ kind, run, number }) => [kind, run, number])).toEqual([
      ['run_started', 'r1', 1],
      ['run_started', 'r2', 2],
    ])
  },

  'starts of one batch respect the limit of active runs of a procedure': async ({ store }) => {
    const starts = ['r1', 'r2', 'r3'].map((id) => startOf(sopRun(id), { concurrentMax: 2 }))
    const other = startOf(sopRun('r4', { sop: 'other' }), { concurrentMax: 1 })
    const dispatched = await store.sops.start([...starts, other], { atMs: 1_000 })
    expect(startedOf(dispatched)).toEqual(['r1', 'r2', 'r4'])
    const reason = 'too many runs of this procedure (max_concurrent = 2), and the queue is full (max_waiting = 0)'
    expect(dispatched[2]).toEqual({ sop: 'deploy', status: 'skipped', reason })
    expect((await store.sops.audit({ limit: 10 })).map(({ kind, run, reason: why }) => [kind, run, why])).toEqual([
      ['run_started', 'r1', null],
      ['run_started', 'r2', null],
      ['trigger_skipped', null, reason],
      ['run_started', 'r4', null],
    ])
    expect(await store.sops.get('r3')).toBeUndefined()
  },

  'a run counts as active until it ends': async ({ store }) => {
    await startRuns(store, ['r1'])
    const waiting = sopRun('r1', { status: 'waiting_approval', gate: { stepId: 'g1', sinceMs: 1_500, why: 'mode' } })
    await store.sops.advance(sopRun('r1'), waiting, [])
    expect(reasonsOf(await start(store, 'r2', { concurrentMax: 1 }))).toHaveLength(1)
    await store.sops.advance(waiting, ended(waiting), [])
    expect(startedOf(await start(store, 'r3', { concurrentMax: 1 }))).toEqual(['r3'])
  },

  'a run that waits for a person counts unless the procedure says otherwise, and in no limit of all': async ({ store }) => {
    await startRuns(store, ['r1'])
    await store.sops.advance(sopRun('r1'), sopRun('r1', { status: 'paused_checkpoint' }), [])
    expect(reasonsOf(await start(store, 'r2', { concurrentMax: 1 }))).toHaveLength(1)
    expect(startedOf(await start(store, 'r3', { concurrentMax: 1, countsPaused: false, totalMax: 1 }))).toEqual(['r3'])
    expect(reasonsOf(await start(store, 'r4', { totalMax: 1 }))).toEqual([expect.stringContaining('max_concurrent_total = 1')])
  },

  'starts respect the limit of active runs of all procedures': async ({ store }) => {
    const starts = ['a', 'b', 'c'].map((sop) => startOf(sopRun(`run of ${sop}`, { sop }), { totalMax: 2 }))
    const dispatched = await store.sops.start(starts, { atMs: 1_000 })
    expect(startedOf(dispatched)).toEqual(['run of a', 'run of b'])
    expect(reasonsOf(dispatched)).toEqual([expect.stringContaining('max_concurrent_total = 2')])
  },

  'a procedure cools down after its last run, whatever its outcome': async ({ store }) => {
    for (const status of SOP_ENDED) {
      const sop = `sop ${status}`
      await runOnce(store, `run ${status}`, { sop, status, endedAtMs: 10_000 })
      const at = (atMs: number, id: string) => store.sops.start([startOf(sopRun(id, { sop }), { cooldownMs: 60_000 })], { atMs })
      expect(await at(10_000, 'x')).toEqual([{ sop, status: 'skipped', reason: 'cooling down for another 60 s' }])
      expect(await at(69_001, 'x')).toEqual([{ sop, status: 'skipped', reason: 'cooling down for another 1 s' }])
      expect(startedOf(await at(70_000, `next ${status}`))).toEqual([`next ${status}`])
    }
    expect(startedOf(await start(store, 'first', { cooldownMs: 60_000 }))).toEqual(['first'])
  },

  'a cooldown survives a restart and the pruning of its runs': async ({ store, restart }) => {
    await runOnce(store, 'r1', { endedAtMs: 10_000 })
    await runOnce(store, 'r2', { sop: 'other', endedAtMs: 20_000 })
    expect(await store.sops.prune({ finishedMax: 1, keysBeforeMs: 0 })).toBe(1)
    const again = await restart()
    expect(await again.sops.get('r1')).toBeUndefined()
    expect(reasonsOf(await start(again, 'r3', { cooldownMs: 60_000 }, 15_000))).toEqual(['cooling down for another 55 s'])
  },

  'a clock set back does not extend a cooldown': async ({ store }) => {
    await runOnce(store, 'r1', { endedAtMs: 3_600_000 })
    expect(reasonsOf(await start(store, 'r2', { cooldownMs: 60_000 }, 1_000))).toEqual(['cooling down for another 60 s'])
    expect(startedOf(await start(store, 'r3', { cooldownMs: 60_000 }, 61_000))).toEqual(['r3'])
  },

  'limits hold between processes': async ({ store, otherProcess }) => {
    const stores = [store, await otherProcess()]
    const dispatched = await Promise.all(
      Array.from({ length: 40 }, (_, at) => stores[at % 2]?.sops.start([startOf(sopRun(`r${at}`), { concurrentMax: 3 })], { atMs: 1_000 })),
    )
    expect(dispatched.flatMap((one) => startedOf(one ?? []))).toHaveLength(3)
    expect(await store.sops.activeCounts()).toEqual(new Map([['deploy', 3]]))
    expect(await store.sops.audit({ limit: 100 })).toHaveLength(40)
    expect(await store.sops.verify()).toMatchObject({ records: 40, broken: null })
  },

  'an event with a known key starts nothing and gets the first answer': async ({ store, restart }) => {
    const about = { atMs: 1_000, key: 'event' }
    const first = await store.sops.start([startOf(sopRun('r1')), startOf(sopRun('r2'), { concurrentMax: 1 })], about)
    expect(first.map(({ status }) => status)).toEqual(['started', 'skipped'])
    expect(await store.sops.start([startOf(sopRun('r3'))], about)).toEqual(first)
    const again = await restart()
    expect(await again.sops.start([startOf(sopRun('r4'))], about)).toEqual(first)
    expect(await runIds(again)).toEqual(['r1'])
    expect(await again.sops.audit({ limit: 10 })).toHaveLength(2)
  },

  'an event that started nothing is known too': async ({ store }) => {
    expect(await store.sops.start([], { atMs: 1_000, key: 'event' })).toEqual([])
    expect(await store.sops.start([startOf(sopRun('r1'))], { atMs: 1_000, key: 'event' })).toEqual([])
    expect(await runIds(store)).toEqual([])
  },

  'of many copies of an event in two processes one starts a run': async ({ store, otherProcess }) => {
    const stores = [store, await otherProcess()]
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, at) => stores[at % 2]?.sops.start([startOf(sopRun(`r${at}`))], { atMs: 1_000, key: 'event' })),
    )
    expect(await runIds(store)).toHaveLength(1)
    for (const answer of answers) expect(startedOf(answer ?? [])).toEqual(await runIds(store))
  },

  'of two processes that claim an idempotency key at once one starts a run': async ({ store, otherProcess, clock }) => {
    const other = await otherProcess()
    const idempotency = { scope: 'hook', key: 'k' }
    const limits = { ttlMs: 60_000, keysMax: 10 }
    const claims = [await store.idempotency.claim(idempotency, limits), await other.idempotency.claim(idempotency, limits)]
    expect(claims).toEqual(['claimed', 'claimed'])
    const about = { atMs: clock.nowMs(), idempotency }
    const first = await store.sops.start([startOf(sopRun('r1'))], about)
    expect(await other.sops.start([startOf(sopRun('r2'))], about)).toEqual(first)
    expect(await runIds(store)).toEqual(['r1'])
  },

  'event keys never collide, and events without a key never repeat': async ({ store }) => {
    for (const [at, odd] of ODD_TEXTS.entries()) {
      expect(startedOf(await store.sops.start([startOf(sopRun(`r${at}`))], { atMs: 1_000, key: odd }))).toEqual([`r${at}`])
    }
    for (const id of ['x', 'y']) expect(startedOf(await store.sops.start([startOf(sopRun(id))], { atMs: 1_000 }))).toEqual([id])
  },

  'a start completes its idempotency key for the rest of the window': async ({ store, restart, clock }) => {
    for (const name of ['a', 'b']) await store.idempotency.claim(key(name), LIMITS)
    await store.sops.start([startOf(sopRun('r1'))], { atMs: clock.nowMs(), key: 'event', idempotency: key('a') })
    await store.sops.start([], { atMs: clock.nowMs(), idempotency: key('b') })
    for (const name of ['a', 'b']) expect(await store.idempotency.claim(key(name), LIMITS)).toBe('done')
    const again = await restart()
    await clock.advance(LIMITS.ttlMs - 1)
    for (const name of ['a', 'b']) expect(await again.idempotency.claim(key(name), LIMITS)).toBe('done')
    await clock.advance(1)
    for (const name of ['a', 'b']) expect(await again.idempotency.claim(key(name), LIMITS)).toBe('claimed')
  },

  'a repeated event completes its own idempotency key and message': async ({ store, restart, clock }) => {
    const about = { atMs: clock.nowMs(), key: 'event' }
    await store.sops.start([startOf(sopRun('r1'))], { ...about, idempotency: key('a') })
    await store.idempotency.claim(key('b'), LIMITS)
    const inbox = await keepOne(store, 'm1')
    const answer = await store.sops.start([startOf(sopRun('r2'))], { ...about, idempotency: key('b'), inbox })
    expect(startedOf(answer)).toEqual(['r1'])
    const again = await restart()
    for (const name of ['a', 'b']) expect(await again.idempotency.claim(key(name), LIMITS)).toBe('done')
    expect(await again.inbox.get(inbox)).toMatchObject({ state: 'done' })
  },

  'keeps at most keysMax keys of turns and events after a restart': async ({ store, restart, clock }) => {
    const limits = { ...LIMITS, keysMax: 3 }
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) {
      await clock.advance(1)
      if ('ace'.includes(name)) await store.sops.start([], { atMs: clock.nowMs(), idempotency: key(name) })
      else await store.turns.finish(turnEnd(name, { endedAtMs: clock.nowMs(), idempotency: key(name) }))
    }
    const { idempotency } = await restart()
    for (const name of ['d', 'e', 'f']) expect(await idempotency.claim(key(name), limits)).toBe('done')
    expect(await idempotency.claim(key('c'), limits)).toBe('claimed')
  },

  'a start completes the message that brought the event': async ({ store, restart }) => {
    const [waiting, running] = [await keepOne(store, 'm1'), await keepOne(store, 'm2')]
    await store.inbox.start(running, 't2', STARTS_MAX)
    await store.sops.start([startOf(sopRun('r1'))], { atMs: 5_000, inbox: waiting })
    await store.sops.start([startOf(sopRun('r2'))], { atMs: 6_000, inbox: running })
    const { inbox, turns } = await own(await restart())
    expect(await inbox.get(waiting)).toMatchObject({ state: 'done', endedAtMs: 5_000 })
    expect(await inbox.get(running)).toMatchObject({ state: 'done', endedAtMs: 6_000 })
    expect(await turns.get('t2')).toMatchObject({ status: 'aborted' })
    expect(await inbox.waiting({ after: 0, limit: 10 })).toEqual([])
  },

  'a start that fails to commit stores nothing and releases its key': async ({ store }) => {
    const inbox = await keepOne(store, 'm1')
    const good = startOf(sopRun('r1'))
    const poisons: SopStart[] = [
      { ...startOf(sopRun('r2')), audit: [audited('run_started', { atMs: {} as unknown as number })] },
      startOf(sopRun('r2', { report: 1n as unknown as null })),
      startOf(sopRun('r1')),
    ]
    for (const poison of poisons) {
      await store.idempotency.claim(key('a'), LIMITS)
      const [bad, fine] = await Promise.allSettled([
        store.sops.start([good, poison], { atMs: 1_000, key: 'event', idempotency: key('a'), inbox }),
        store.keyValue('x').set('a', 1),
      ])
      expect([bad.status, fine.status]).toEqual(['rejected', 'fulfilled'])
      expect(await store.idempotency.claim(key('a'), LIMITS)).toBe('claimed')
    }
    expect(await runIds(store)).toEqual([])
    expect(await store.sops.audit({ limit: 10 })).toEqual([])
    expect(await store.inbox.get(inbox)).toMatchObject({ state: 'pending' })
    expect(startedOf(await store.sops.start([good], { atMs: 1_000, key: 'event' }))).toEqual(['r1'])
  },
}

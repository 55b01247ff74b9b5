/** Rules for procedure runs after their start. */
import type { MessageNews, Store } from '@sluice/sdk'
import { expect } from 'vitest'
import { reply } from './delivery-samples.ts'
import { ODD_TEXTS } from './samples.ts'
import { audited, ended, runOnce, sopRun, startOf, startRuns } from './sop-samples.ts'
import { own, type StoreRules } from './store-bench.ts'

const list = async ({ sops }: Store, filter: object): Promise<string[]> => (await sops.runs({ limit: 100, ...filter })).map(({ id }) => id)

export const sopRunRules: StoreRules = {
  'replaces an unchanged run together with its records': async ({ store, restart }) => {
    await startRuns(store, ['r1'])
    const read = await store.sops.get('r1')
    if (!read) throw new Error('the run was not stored')
    const after = sopRun('r1', {
      step: 2,
      results: [
        { step: 1, status: 'completed', output: ODD_TEXTS.join(' '), value: { 2: 'b', a: 1, 1: -0 }, startedAtMs: 1_000, endedAtMs: 1_500 },
      ],
    })
    expect(await store.sops.advance(read, after, [audited('step_completed', { run: 'r1', step: 1 })])).toEqual([])
    const { sops } = await restart()
    const again = await sops.get('r1')
    expect(again).toEqual(JSON.parse(JSON.stringify(after)))
    expect((await sops.audit({ limit: 10 })).map(({ kind, step }) => [kind, step])).toEqual([
      ['run_started', null],
      ['step_completed', 1],
    ])
    expect(again && (await sops.advance(again, ended(again), []))).toEqual([])
  },

  'a run that changed since it was read is not replaced': async ({ store, otherProcess }) => {
    const other = await otherProcess()
    await startRuns(store, ['r1'])
    const stepped = sopRun('r1', { step: 2 })
    expect(await other.sops.advance(sopRun('r1'), stepped, [audited('step_completed', { run: 'r1' })])).toEqual([])
    expect(await store.sops.advance(sopRun('r1'), sopRun('r1', { status: 'cancelled' }), [audited('run_cancelled')])).toBe(false)
    expect(await store.sops.advance(sopRun('r2'), sopRun('r2', { step: 2 }), [audited('step_completed')])).toBe(false)
    expect(await store.sops.get('r1')).toEqual(stepped)
    expect(await store.sops.audit({ limit: 10 })).toHaveLength(2)
  },

  'of many replacements of one run in two processes one succeeds': async ({ store, otherProcess }) => {
    const stores = [store, await otherProcess()]
    await startRuns(store, ['r1'])
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, at) =>
        stores[at % 2]?.sops.advance(sopRun('r1'), sopRun('r1', { gates: at + 1 }), [audited('approval_requested', { step: at })]),
      ),
    )
    expect(results.filter((won) => won)).toHaveLength(1)
    const gates = results.findIndex((won) => won) + 1
    expect(await store.sops.get('r1')).toMatchObject({ gates })
    expect((await store.sops.audit({ limit: 10 })).map(({ step }) => step)).toEqual([null, gates - 1])
  },

  'a page of one status is full while older runs match': async ({ store }) => {
    const failed = await runOnce(store, 'r1', { status: 'failed' })
    for (const id of ['r2', 'r3', 'r4']) await runOnce(store, id)
    expect(await list(store, { status: 'failed', limit: 1 })).toEqual([failed.id])
    expect(await list(store, { status: 'completed', limit: 2 })).toEqual(['r4', 'r3'])
    expect(await list(store, { status: 'completed', before: 'r3', sop: failed.sop })).toEqual(['r2'])
    expect(await list(store, { status: 'completed', active: true })).toEqual([])
  },

  'runs are listed by the person who started them': async ({ store, restart }) => {
    const { event } = sopRun('r0')
    const odd = ODD_TEXTS.join(' ')
    for (const [id, starter] of Object.entries({ r1: 'device:d1', r2: undefined, r3: 'device:d2', r4: 'device:d1', r5: odd }))
      await startRuns(store, [id], { event: { ...event, payload: odd, ...(starter !== undefined && { starter }) } })
    const { sops } = await restart()
    const ids = async (filter: object) => (await sops.runs({ limit: 100, ...filter })).map(({ id }) => id)
    expect(await ids({ starter: 'device:d1' })).toEqual(['r4', 'r1'])
    expect(await ids({ starter: 'device:d1', sop: 'deploy', active: true, before: 'r4', limit: 1 })).toEqual(['r1'])
    expect(await ids({ starter: odd })).toEqual(['r5'])
    expect(await ids({ starter: 'device:d3' })).toEqual([])
    expect((await sops.get('r1'))?.event.starter).toBe('device:d1')
  },

  'the commit that ends a run queues its notice if that is news': async ({ store, restart }) => {
    await startRuns(store, ['r1', 'r2', 'r3'])
    const news = (sinceMs: number): MessageNews => {
      const held = { client: 'chat', cause: 'unanswered', sinceMs, untilMs: sinceMs } as const
      return { held, quietMs: 1000, notice: [reply(`told at ${sinceMs}`)] }
    }
    const end = (id: string, sinceMs: number) =>
      store.sops.advance(sopRun(id), ended(sopRun(id), { status: 'failed' }), [audited('run_failed', { run: id })], news(sinceMs))
    const first = await end('r1', 10_000)
    expect(first).toEqual([expect.any(Number)])
    expect(await end('r1', 20_000)).toBe(false)
    expect(await end('r2', 10_500)).toEqual([])
    expect(await end('r3', 12_000)).toEqual([expect.any(Number)])
    const { outbox } = await restart()
    expect((await outbox.list({ limit: 9 })).map(({ text }) => text)).toEqual(['told at 12000', 'told at 10000'])
    expect(await outbox.get((first || [])[0] ?? 0)).toMatchObject({ state: 'queued', inbox: null })
  },

  'an ended run never changes': async ({ store }) => {
    const over = await runOnce(store, 'r1')
    expect(await store.sops.advance(over, { ...over, status: 'running', endedAtMs: null }, [audited('step_started')])).toBe(false)
    expect(await store.sops.get('r1')).toEqual(over)
    expect(await store.sops.audit({ limit: 10 })).toHaveLength(1)
  },

  'a run and its records are committed together or not at all': async ({ store }) => {
    await startRuns(store, ['r1'])
    const poison = audited('step_completed', { by: {} as unknown as string })
    await expect(store.sops.advance(sopRun('r1'), sopRun('r1', { step: 2 }), [audited('reported'), poison])).rejects.toThrow()
    expect(await store.sops.get('r1')).toEqual(sopRun('r1'))
    expect(await store.sops.audit({ limit: 10 })).toHaveLength(1)
  },

  'lists runs newest first, in pages, by procedure or state': async ({ store }) => {
    await startRuns(store, ['a', 'b', 'c'])
    await startRuns(store, ['d', 'e'], { sop: 'other' })
    for (const run of [sopRun('b'), sopRun('d', { sop: 'other' })]) await store.sops.advance(run, ended(run), [])
    expect(await list(store, {})).toEqual(['e', 'd', 'c', 'b', 'a'])
    expect(await list(store, { limit: 2 })).toEqual(['e', 'd'])
    expect(await list(store, { limit: 2, before: 'd' })).toEqual(['c', 'b'])
    expect(await list(store, { before: 'unknown' })).toEqual([])
    expect(await list(store, { sop: 'deploy' })).toEqual(['c', 'b', 'a'])
    expect(await list(store, { active: true })).toEqual(['e', 'c', 'a'])
    expect(await list(store, { active: false })).toEqual(['d', 'b'])
    expect(await list(store, { active: true, sop: 'deploy', before: 'c' })).toEqual(['a'])
    expect(await list(store, { active: false, sop: 'deploy' })).toEqual(['b'])
    expect(await list(store, { sop: 'unknown' })).toEqual([])
  },

  'lists unfinished runs oldest first, in pages': async ({ store, restart }) => {
    await startRuns(store, ['a', 'b', 'c', 'd', 'e'])
    await store.sops.advance(sopRun('b'), ended(sopRun('b'), { status: 'failed' }), [])
    const { sops } = await own(await restart())
    const page = async (after: string | null) => (await sops.unfinished({ after, limit: 2 })).map(({ id }) => id)
    expect(await page(null)).toEqual(['a', 'c'])
    expect(await page('c')).toEqual(['d', 'e'])
    expect(await page('e')).toEqual([])
    expect(await sops.unfinished({ after: 'b', limit: 1 })).toEqual([sopRun('c')])
  },

  'counts active runs by procedure': async ({ store }) => {
    expect(await store.sops.activeCounts()).toEqual(new Map())
    await startRuns(store, ['a', 'b'])
    await startRuns(store, ['c'], { sop: 'other' })
    await runOnce(store, 'd', { sop: 'third' })
    expect(await store.sops.activeCounts()).toEqual(
      new Map([
        ['deploy', 2],
        ['other', 1],
      ]),
    )
  },

  'drops all but the newest ended runs, and no active run': async ({ store }) => {
    await startRuns(store, ['active'])
    await startRuns(store, ['late'])
    for (const [at, id] of ['a', 'b', 'c', 'd'].entries()) await runOnce(store, id, { endedAtMs: 2_000 + at })
    await store.sops.advance(sopRun('late'), ended(sopRun('late'), { endedAtMs: 9_000 }), [])
    expect(await store.sops.prune({ finishedMax: 0, keysBeforeMs: 0 })).toBe(0)
    expect(await store.sops.prune({ finishedMax: 5, keysBeforeMs: 0 })).toBe(0)
    expect(await store.sops.prune({ finishedMax: 2, keysBeforeMs: 0 })).toBe(3)
    expect(await list(store, {})).toEqual(['d', 'late', 'active'])
    expect(await store.sops.prune({ finishedMax: 2, keysBeforeMs: 0 })).toBe(0)
    expect(await store.sops.audit({ limit: 10 })).toHaveLength(6)
  },

  'one call drops every run that may be dropped': async ({ store }) => {
    const runs = Array.from({ length: 700 }, (_, at) => sopRun(`r${at}`))
    await startRuns(
      store,
      runs.map(({ id }) => id),
    )
    await Promise.all(runs.map((run) => store.sops.advance(run, ended(run), [])))
    expect(await store.sops.prune({ finishedMax: 50, keysBeforeMs: 0 })).toBe(650)
    expect((await list(store, {})).slice(-1)).toEqual(['r650'])
  },

  'drops old event keys, so the events may come again': async ({ store }) => {
    const fire = (id: string, key: string, atMs: number) => store.sops.start([startOf(sopRun(id))], { atMs, key })
    await fire('r1', 'old', 1_000)
    await fire('r2', 'new', 2_000)
    expect(await store.sops.prune({ finishedMax: 0, keysBeforeMs: 2_000 })).toBe(1)
    expect(await fire('r3', 'old', 3_000)).toMatchObject([{ runId: 'r3' }])
    expect(await fire('r4', 'new', 3_000)).toMatchObject([{ runId: 'r2' }])
  },
}

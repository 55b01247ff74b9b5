/** Rules for the audit log of procedures: no record changes unnoticed. */
import { AUDIT_ROOT, auditHash } from '@sluice/sdk'
import { expect } from 'vitest'
import { ODD_TEXTS } from './samples.ts'
import { audited, sopRun, startOf, startRuns } from './sop-samples.ts'
import type { StoreRules } from './store-bench.ts'

export const auditRules: StoreRules = {
  'a record is stored unchanged, numbered and chained to the last': async ({ store, restart }) => {
    await startRuns(store, ['r1'])
    const given = [
      audited('approved', { run: 'r1', step: 2, by: 'roomchat:+15550100', reason: 'go on', detail: { b: [1, { c: null }], a: '"' } }),
      audited('step_started', { run: 'r1', step: 2, atMs: 1_234.5 }),
    ]
    await store.sops.advance(sopRun('r1'), sopRun('r1', { step: 2 }), given)
    const { sops } = await restart()
    const rows = await sops.audit({ limit: 10 })
    expect(rows).toMatchObject([
      { number: 1, previous: AUDIT_ROOT },
      { number: 2, ...given[0] },
      { number: 3, ...given[1] },
    ])
    for (const [at, { hash, ...row }] of rows.entries()) {
      expect(row.previous).toBe(rows[at - 1]?.hash ?? AUDIT_ROOT)
      expect(hash).toBe(auditHash(row, JSON.stringify(row.detail)))
    }
    expect(await sops.verify()).toEqual({ records: 3, head: rows[2]?.hash, broken: null })
  },

  'records without a procedure are chained too': async ({ store, restart }) => {
    await startRuns(store, ['r1'])
    const given = audited('device_write', { sop: '', run: null, step: null, detail: { device: 'board_a0', pin: 2, value: 1 } })
    await store.sops.record([given])
    const { sops } = await restart()
    expect(await sops.audit({ limit: 10, after: 1 })).toMatchObject([{ number: 2, ...given }])
    expect((await sops.verify()).broken).toBeNull()
  },

  'an empty log verifies': async ({ store: { sops } }) => {
    expect(await sops.verify()).toEqual({ records: 0, head: AUDIT_ROOT, broken: null })
    expect(await sops.audit({ limit: 10 })).toEqual([])
  },

  'odd texts do not break the chain': async ({ store, restart }) => {
    await startRuns(store, ['r1'])
    const records = ODD_TEXTS.map((text) => audited('reported', { run: text, sop: text, by: text, reason: text, detail: { [text]: text } }))
    await store.sops.advance(sopRun('r1'), sopRun('r1', { step: 2 }), records)
    const { sops } = await restart()
    expect((await sops.verify()).broken).toBeNull()
    const rows = await sops.audit({ limit: 100, after: 1 })
    expect(rows.map(({ reason }) => reason)).toEqual(ODD_TEXTS.map((text) => text.toWellFormed()))
    expect(rows.map(({ detail }) => detail)).toEqual(records.map(({ detail }) => detail))
  },

  'records of two processes form one chain without gaps': async ({ store, otherProcess }) => {
    const stores = [store, await otherProcess()]
    const poison = { ...startOf(sopRun('poison')), audit: [audited('run_started', { kind: {} as unknown as 'reported' })] }
    await Promise.allSettled(
      Array.from({ length: 60 }, (_, at) => stores[at % 2]?.sops.start([at % 5 ? startOf(sopRun(`r${at}`)) : poison], { atMs: 1_000 })),
    )
    const rows = await store.sops.audit({ limit: 100 })
    expect(rows.map(({ number }) => number)).toEqual(Array.from({ length: 48 }, (_, at) => at + 1))
    expect(await store.sops.verify()).toMatchObject({ records: 48, broken: null })
  },

  'lists records in order, in pages, by run or procedure': async ({ store }) => {
    await startRuns(store, ['a', 'b'])
    await startRuns(store, ['c'], { sop: 'other' })
    await store.sops.advance(sopRun('a'), sopRun('a', { step: 2 }), [
      audited('step_completed', { run: 'a' }),
      audited('step_started', { run: 'a' }),
    ])
    const numbers = async (filter: object) => (await store.sops.audit({ limit: 10, ...filter })).map(({ number }) => number)
    expect(await numbers({})).toEqual([1, 2, 3, 4, 5])
    expect(await numbers({ limit: 2, after: 2 })).toEqual([3, 4])
    expect(await numbers({ run: 'a' })).toEqual([1, 4, 5])
    expect(await numbers({ run: 'a', after: 1, limit: 1 })).toEqual([4])
    expect(await numbers({ sop: 'other' })).toEqual([3])
    expect(await numbers({ sop: 'other', run: 'a' })).toEqual([])
    expect(await numbers({ sop: 'deploy', run: 'b' })).toEqual([2])
  },

  'a long log can be verified while it grows': async ({ store }) => {
    const ids = Array.from({ length: 1_200 }, (_, at) => `r${at}`)
    // Each start is one transaction, which may take only some seconds.
    for (let at = 0; at < ids.length; at += 100) await startRuns(store, ids.slice(at, at + 100))
    const verified = store.sops.verify()
    await startRuns(store, ['late'])
    expect(await verified).toMatchObject({ broken: null })
    expect(await store.sops.verify()).toMatchObject({ records: 1_201, broken: null })
  },
}

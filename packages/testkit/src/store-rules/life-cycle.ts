/** Rules for writing, checking and closing a store. */
import { expect } from 'vitest'
import { asked } from './approval-samples.ts'
import { answerOne, arrival, inbound, reply, STARTS_MAX } from './delivery-samples.ts'
import { queuedTurn, turnEnd } from './samples.ts'
import { sopRun, startOf, startRuns } from './sop-samples.ts'
import { own, type StoreRules } from './store-bench.ts'

export const lifeCycleRules: StoreRules = {
  'another process sees acknowledged writes without a close': async ({ store, otherProcess }) => {
    await Promise.all(Array.from({ length: 50 }, (_, at) => store.turns.finish(turnEnd(`t${at}`))))
    const other = await otherProcess()
    for (let at = 0; at < 50; at++) expect(await other.turns.get(`t${at}`)).toMatchObject({ status: 'done' })
    expect(await other.sessions.history('room', 1_000)).toHaveLength(100)
  },

  'writes take effect in call order': async ({ store }) => {
    const values = store.keyValue('feature')
    await Promise.all([
      ...Array.from({ length: 20 }, (_, at) => values.set('a', at)),
      values.delete('b'),
      values.set('b', 1),
      values.set('b', 2),
    ])
    expect(await values.get('a')).toBe(19)
    expect(await values.get('b')).toBe(2)
  },

  'a failed write does not affect other writes': async ({ store }) => {
    const { devices } = store
    const { turns } = await own(store)
    const poison = queuedTurn('poison', { input: { not: 'a text' } as unknown as string })
    const writes = await Promise.allSettled([
      turns.enqueue(queuedTurn('t1')),
      turns.enqueue(poison),
      devices.add({ id: 'd1', name: 'n', role: 'operator', tokenHash: 'h', createdAtMs: 1, expiresAtMs: null }),
      turns.enqueue(queuedTurn('t2')),
    ])
    expect(writes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
    expect((await turns.unfinished(10)).map(({ id }) => id)).toEqual(['t1', 't2'])
    expect(await devices.findByTokenHash('h')).toMatchObject({ id: 'd1' })
  },

  'counts waiting writes': async ({ store }) => {
    expect(store.pending()).toBe(0)
    const written = store.keyValue('feature').set('a', 1)
    expect(store.pending()).toBe(1)
    await written
    expect(store.pending()).toBe(0)
  },

  'a sound store reports no problems': async ({ store }) => {
    await store.turns.finish(turnEnd('t1'))
    await store.memory.put({ owner: 'cli', key: 'a', content: 'b', category: 'c', untrusted: false, atMs: 1 })
    await answerOne(store, 'm1', [reply('a')])
    await store.approvals.open(asked('r1'), [reply('b')])
    await startRuns(store, ['r1'])
    expect(await store.check()).toEqual([])
  },

  'close waits for pending writes and may be called twice': async ({ store, otherProcess }) => {
    const written = store.turns.finish(turnEnd('t1'))
    await Promise.all([store.close(), store.close()])
    await written
    await store.close()
    expect(await (await otherProcess()).turns.get('t1')).toMatchObject({ status: 'done' })
  },

  'every call on a closed store fails with unavailable': async ({ store }) => {
    const owned = await own(store)
    await store.close()
    const calls = [
      () => store.turns.finish(turnEnd('t1')),
      () => store.turns.get('t1'),
      () => store.sessions.list({ limit: 1 }),
      () => store.devices.findByTokenHash('h'),
      () => store.devices.version(),
      () => store.idempotency.claim({ scope: 's', key: 'k' }, { ttlMs: 1, keysMax: 1 }),
      () => store.memory.search('cli', 'x', 1),
      () => store.keyValue('feature').get('a'),
      () => store.inbox.keep(arrival('m1')),
      () => store.inbox.known('roomchat', [inbound('m1')]),
      () => store.inbox.start(1, 't1', STARTS_MAX),
      () => store.inbox.list({ limit: 1 }),
      () => store.outbox.add([reply('a')]),
      () => owned.outbox.waiting({ after: 0, limit: 1 }),
      () => store.outbox.oldestWaitingMs(),
      () => store.approvals.open(asked('r1'), []),
      () => owned.approvals.unfinished({ after: null, limit: 1 }),
      () => owned.keyValue('feature').set('a', 1),
      () => store.sops.start([startOf(sopRun('r1'))], { atMs: 1 }),
      () => store.sops.runs({ limit: 1 }),
      () => store.sops.verify(),
      () => store.prune({ endedBeforeMs: 0, idsBeforeMs: 0, keysBeforeMs: 0, historyBeforeMs: 0, bytesMax: 0, nowMs: 0, limit: 1 }),
      () => store.onChange(() => undefined),
      () => store.check(),
    ]
    for (const call of calls) await expect((async () => call())()).rejects.toMatchObject({ code: 'unavailable' })
    expect(store.pending()).toBe(0)
  },
}

/** Rules for the trace context of incoming messages and outgoing replies. */
import { expect } from 'vitest'
import { answerOne, arrival, keepOne, reply, STARTS_MAX } from './delivery-samples.ts'
import type { StoreRules } from './store-bench.ts'

const LINE = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01 vendor=1,other=2`

export const traceRules: StoreRules = {
  'every attempt of a message has the trace of its request': async ({ store, restart }) => {
    const kept = await store.inbox.keep(arrival(['m1', 'm2'], { trace: LINE }))
    const { inbox } = await restart()
    for (const number of kept === 'replayed' ? [] : kept) {
      expect(await inbox.get(number ?? 0)).toMatchObject({ trace: LINE })
      expect(await inbox.start(number ?? 0, `t${number}`, STARTS_MAX)).toMatchObject({ attempts: 1, trace: LINE })
      await inbox.retry(number ?? 0, { error: 'e', atMs: 1 })
      expect(await inbox.start(number ?? 0, `t${number}`, STARTS_MAX)).toMatchObject({ attempts: 2, trace: LINE })
    }
    expect(kept).toHaveLength(2)
  },

  'every attempt of a reply has its trace': async ({ store, restart }) => {
    const number = await answerOne(store, 'm1', [reply('a', { trace: LINE })])
    const [row] = (await store.inbox.get(number))?.replies ?? []
    const { outbox } = await restart()
    expect(await outbox.start(row?.number ?? 0)).toMatchObject({ trace: LINE })
  },

  'messages and replies without a trace have none': async ({ store }) => {
    const number = await keepOne(store, 'm1')
    expect(await store.inbox.get(number)).not.toHaveProperty('trace')
    expect(await store.inbox.start(number, 't', STARTS_MAX)).not.toHaveProperty('trace')
    const [queued = 0] = await store.outbox.add([reply('a')])
    expect(await store.outbox.start(queued)).not.toHaveProperty('trace')
  },
}

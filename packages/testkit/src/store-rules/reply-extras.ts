/** Rules for the extras of a message besides its text, and for the draft that shows a reply in progress. */
import type { ReplyExtras } from '@sluice/sdk'
import { expect } from 'vitest'
import { answerOne, keepOne, reply, STARTS_MAX } from './delivery-samples.ts'
import { ODD_TEXTS, turnEnd } from './samples.ts'
import { own, type StoreRules } from './store-bench.ts'

const EXTRAS: readonly ReplyExtras[] = [
  { edits: 'p1' },
  { buttons: [{ label: 'Yes', value: 'approve:t', tone: 'good' }] },
  { topic: 'A thread', files: [{ kind: 'image', path: 'out/chart.png' }] },
  {},
  ...ODD_TEXTS.map((text) => ({ topic: text })),
]

export const replyExtraRules: StoreRules = {
  'every attempt gets the extras unchanged': async ({ store, restart }) => {
    const numbers = await store.outbox.add(EXTRAS.map((extras) => reply('a', { extras })))
    const { outbox } = await restart()
    for (const [at, number] of numbers.entries()) {
      expect((await outbox.start(number))?.extras).toEqual(EXTRAS[at])
      await outbox.retry(number, { error: 'e', atMs: 1 })
      expect(await outbox.start(number)).toMatchObject({ attempts: 2, extras: EXTRAS[at] })
    }
  },

  'replies of a turn have extras too': async ({ store }) => {
    const number = await answerOne(store, 'm1', [reply('a'), reply('b', { extras: { edits: 'p1' } })])
    const [plain = 0, edit = 0] = (await store.inbox.get(number))?.replies.map((row) => row.number) ?? []
    expect(await store.outbox.start(plain)).not.toHaveProperty('extras')
    expect(await store.outbox.start(edit)).toMatchObject({ extras: { edits: 'p1' } })
  },

  'later attempts know the newest draft of the reply': async ({ store, restart }) => {
    const number = await keepOne(store, 'm1')
    expect(await store.inbox.start(number, 't1', STARTS_MAX)).toMatchObject({ draft: null })
    await store.inbox.draft(number, 'p1')
    await store.inbox.draft(number, 'p2')
    const { inbox } = await restart()
    expect(await inbox.start(number, 't1', STARTS_MAX)).toMatchObject({ attempts: 2, draft: 'p2' })
    await inbox.retry(number, { error: 'e', atMs: 1 })
    expect(await inbox.start(number, 't1', STARTS_MAX)).toMatchObject({ draft: 'p2' })
  },

  'a replay sends a new message': async ({ store }) => {
    const number = await keepOne(store, 'm1')
    await store.inbox.start(number, 't1', STARTS_MAX)
    await store.inbox.draft(number, 'p1')
    await store.turns.finish(turnEnd('t1', { delivery: { inbox: number, replies: [] } }))
    await store.inbox.draft(number, 'late')
    await store.inbox.replay(number)
    expect(await store.inbox.start(number, 't2', STARTS_MAX)).toMatchObject({ draft: null })
  },

  'a message with nothing to run is done, and so is its turn': async ({ store, restart }) => {
    const [waiting, running, retried] = [await keepOne(store, 'm1'), await keepOne(store, 'm2'), await keepOne(store, 'm3')]
    for (const number of [running, retried]) await store.inbox.start(number, `t${number}`, STARTS_MAX)
    await store.inbox.retry(retried, { error: 'e', atMs: 9_000 })
    for (const number of [waiting, running, retried]) await store.inbox.done(number, 5_000)
    const { inbox, turns } = await own(await restart())
    for (const number of [waiting, running, retried]) {
      expect(await inbox.get(number)).toMatchObject({ state: 'done', endedAtMs: 5_000, nextAtMs: null, error: null, replies: [] })
      expect(await inbox.start(number, 't', STARTS_MAX)).toBeUndefined()
    }
    for (const number of [running, retried]) expect(await turns.get(`t${number}`)).toMatchObject({ status: 'aborted', endedAtMs: 5_000 })
    expect(await turns.unfinished(10)).toEqual([])
  },

  'an ended message cannot be completed again': async ({ store }) => {
    const done = await answerOne(store, 'm1')
    const dead = await keepOne(store, 'm2')
    await store.inbox.markDead(dead, { error: 'e', atMs: 3_000 })
    for (const number of [done, dead, 999]) await store.inbox.done(number, 9_000)
    expect(await store.inbox.get(done)).toMatchObject({ state: 'done', endedAtMs: 2_000 })
    expect(await store.turns.get('turn of m1')).toMatchObject({ status: 'done', endedAtMs: 2_000 })
    expect(await store.inbox.get(dead)).toMatchObject({ state: 'dead', endedAtMs: 3_000 })
  },
}

/** Rules for the end of a turn that answers a message. */
import { expect } from 'vitest'
import { answerOne, keepOne, reply, replyParts, STARTS_MAX } from './delivery-samples.ts'
import { failedTurn, turnEnd, user } from './samples.ts'
import { own, type StoreRules } from './store-bench.ts'

export const replyRules: StoreRules = {
  'ending a turn completes its message and queues its replies': async ({ store, otherProcess }) => {
    const number = await keepOne(store, 'm1')
    await store.inbox.start(number, 't1', STARTS_MAX)
    await store.turns.checkpoint('t1', [user('x')])
    const replies = [
      ...replyParts(['one', 'two'], { turnId: 't1' }),
      reply('three', { turnId: 't1', to: { to: 'other', more: { a: 'b' } } }),
    ]
    const numbers = await store.turns.finish(turnEnd('t1', { endedAtMs: 5_000, delivery: { inbox: number, replies } }))
    const other = await otherProcess()
    expect(await other.turns.get('t1')).toMatchObject({ status: 'done', owner: 'device' })
    const entry = await other.inbox.get(number)
    expect(entry).toMatchObject({ state: 'done', endedAtMs: 5_000, nextAtMs: null, turnId: 't1' })
    expect(entry?.replies).toEqual(
      replies.map((given, at) => ({
        ...given,
        number: numbers[at],
        inbox: number,
        state: 'queued',
        attempts: 0,
        nextAtMs: null,
        endedAtMs: null,
        providerId: null,
        repeated: false,
        error: null,
      })),
    )
    expect((await (await own(other)).outbox.waiting({ after: 0, limit: 10 })).map((waiting) => waiting.number)).toEqual(numbers)
    expect(await other.sessions.history('room', 10)).toHaveLength(2)
  },

  'a done message shows no error of earlier attempts': async ({ store }) => {
    const number = await keepOne(store, 'm1')
    await store.inbox.start(number, 't1', STARTS_MAX)
    await store.inbox.retry(number, { error: 'no answer', atMs: 3_000 })
    await store.inbox.start(number, 't1', STARTS_MAX)
    await store.turns.finish(turnEnd('t1', { delivery: { inbox: number, replies: [] } }))
    expect(await store.inbox.get(number)).toMatchObject({ state: 'done', attempts: 2, error: null })
  },

  'ending a turn without a message queues nothing': async ({ store: { turns, outbox } }) => {
    expect(await turns.finish(turnEnd('t1'))).toEqual([])
    expect(await outbox.list({ limit: 10 })).toEqual([])
  },

  'a failed turn can queue replies too': async ({ store }) => {
    const number = await answerOne(store, 'm1', [reply('sorry')], failedTurn('turn of m1'))
    expect(await store.inbox.get(number)).toMatchObject({ state: 'done', replies: [{ text: 'sorry' }] })
    expect(await store.turns.get('turn of m1')).toMatchObject({ status: 'failed' })
  },

  'an ended turn queues nothing more': async ({ store }) => {
    const number = await answerOne(store, 'm1', [reply('first')])
    const again = turnEnd('turn of m1', { endedAtMs: 9_000, delivery: { inbox: number, replies: [reply('second')] } })
    for (const end of [again, { ...again, sessionId: null }]) {
      await expect(store.turns.finish(end)).rejects.toMatchObject({ code: 'conflict' })
    }
    expect(await store.inbox.get(number)).toMatchObject({ endedAtMs: 2_000, replies: [{ text: 'first' }] })
    expect(await store.outbox.list({ limit: 10 })).toHaveLength(1)
    expect(await store.sessions.history('room', 10)).toHaveLength(2)
  },

  'turn, message and replies are committed together or not at all': async ({ store }) => {
    const number = await keepOne(store, 'm1')
    await store.inbox.start(number, 't1', STARTS_MAX)
    const poison = reply('poison', { clientId: {} as unknown as string })
    await expect(store.turns.finish(turnEnd('t1', { delivery: { inbox: number, replies: [reply('good'), poison] } }))).rejects.toThrow()
    expect(await store.inbox.get(number)).toMatchObject({ state: 'running', endedAtMs: null, replies: [] })
    expect(await store.turns.get('t1')).toMatchObject({ status: 'running', endedAtMs: null })
    expect(await store.sessions.history('room', 10)).toEqual([])
    expect(await store.turns.finish(turnEnd('t1', { delivery: { inbox: number, replies: [reply('good')] } }))).toHaveLength(1)
  },

  'a replayed message keeps its earlier replies': async ({ store }) => {
    const number = await answerOne(store, 'm1', [reply('first')])
    await store.inbox.replay(number)
    await store.inbox.start(number, 't2', STARTS_MAX)
    await store.turns.finish(turnEnd('t2', { delivery: { inbox: number, replies: [reply('second')] } }))
    expect((await store.inbox.get(number))?.replies.map(({ text }) => text)).toEqual(['first', 'second'])
  },
}

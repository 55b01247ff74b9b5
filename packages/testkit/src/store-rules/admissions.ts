/** Rules for the limits of clients. */
import type { CountedLimits, Store } from '@sluice/sdk'
import { expect } from 'vitest'
import { answerOne, inbound, keepOne, reply, STARTS_MAX } from './delivery-samples.ts'
import { queuedTurn, turnEnd } from './samples.ts'
import { own, type StoreRules } from './store-bench.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** Noon in UTC. */
const NOON = 20_000 * DAY_MS + DAY_MS / 2

const limits = (key: string, part: Partial<CountedLimits> = {}): CountedLimits => ({
  key,
  turnsPerHour: 0,
  turnsInFlight: 0,
  usdPerDay: 0,
  ...part,
})

const take = (store: Pick<Store, 'admissions'>, id: string, counted: readonly CountedLimits[], atMs = NOON) =>
  store.admissions.take({ id, counted, shard: 7, atMs })

/** Limits that keep all rows with contents. */
const retention = { endedBeforeMs: 0, keysBeforeMs: 0, idsBeforeMs: 0, historyBeforeMs: 0, bytesMax: 1e12, limit: 100 }

export const admissionRules: StoreRules = {
  'a client begins at most this number of turns within any hour, also after a restart': async ({ store, restart }) => {
    const two = [limits('ann', { turnsPerHour: 2 })]
    expect(await take(store, 't1', two, NOON)).toBeUndefined()
    expect(await take(store, 't2', two, NOON + 10)).toBeUndefined()
    const exceeded = { limit: 'turns_per_hour', key: 'ann', value: 2, freeAtMs: NOON + HOUR_MS }
    expect(await take(store, 't3', two, NOON + 20)).toEqual(exceeded)
    const again = await restart()
    expect(await take(again, 't3', two, NOON + HOUR_MS - 1)).toEqual(exceeded)
    expect(await take(again, 'other', [limits('bob', { turnsPerHour: 2 })], NOON)).toBeUndefined()
    expect(await take(again, 't3', two, NOON + HOUR_MS)).toBeUndefined()
    expect(await take(again, 't4', two, NOON + HOUR_MS)).toMatchObject({ freeAtMs: NOON + 10 + HOUR_MS })
  },

  'a turn that asks again is counted once': async ({ store }) => {
    const two = [limits('ann', { turnsPerHour: 2 })]
    for (let attempt = 0; attempt < 5; attempt++) expect(await take(store, 't1', two, NOON + attempt)).toBeUndefined()
    expect(await take(store, 't2', two)).toBeUndefined()
  },

  'an admission that is taken back neither counts nor hides an earlier one': async ({ store }) => {
    const three = [limits('ann', { turnsPerHour: 3 })]
    for (const [index, id] of ['t1', 't2', 't3'].entries()) await take(store, id, three, NOON + index)
    await store.admissions.cancel('t2')
    expect(await take(store, 't4', three, NOON + 3)).toBeUndefined()
    expect(await take(store, 't5', three, NOON + 4)).toMatchObject({ freeAtMs: NOON + HOUR_MS })
    await store.admissions.cancel('t1')
    expect(await take(store, 't5', three, NOON + 4)).toBeUndefined()
    expect(await take(store, 't6', three, NOON + 5)).toMatchObject({ freeAtMs: NOON + 2 + HOUR_MS })
  },

  'two processes count together': async ({ store, otherProcess }) => {
    const two = [limits('ann', { turnsPerHour: 2 })]
    const other = await otherProcess()
    const taken = await Promise.all(['a', 'b', 'c', 'd'].map((id, index) => take(index % 2 ? store : other, id, two)))
    expect(taken.filter((exceeded) => exceeded === undefined)).toHaveLength(2)
  },

  'a clock that was set back neither frees nor holds back a client for longer': async ({ store }) => {
    const one = [limits('ann', { turnsPerHour: 1 })]
    await take(store, 't1', one, NOON + 30 * DAY_MS)
    expect(await take(store, 't2', one, NOON)).toMatchObject({ freeAtMs: NOON + HOUR_MS })
    expect(await take(store, 't2', one, NOON + HOUR_MS)).toBeUndefined()
  },

  'the end of a message or of a turn ends its admission in the same commit': async ({ store }) => {
    const one = [limits('ann', { turnsInFlight: 1 })]
    const busy = { limit: 'turns_in_flight', key: 'ann', value: 1, freeAtMs: NOON }
    const number = await keepOne(store, 'm1')
    expect(await take(store, `inbox:${number}`, one)).toBeUndefined()
    await store.inbox.start(number, 'turn of m1', STARTS_MAX)
    await store.inbox.retry(number, { error: 'e', atMs: 5 })
    expect(await take(store, 't1', one)).toEqual(busy)
    await store.inbox.done(number, 9)
    expect(await take(store, 't1', one)).toBeUndefined()
    await store.turns.enqueue(queuedTurn('t1'))
    expect(await take(store, 't2', one)).toEqual(busy)
    await store.turns.finish(turnEnd('t1'))
    expect(await take(store, 't2', one)).toBeUndefined()
    await store.turns.finish(turnEnd('t2'))
    expect(await take(store, 't3', one)).toBeUndefined()
    await store.admissions.cancel('t3')
    expect(await take(store, 't4', one)).toBeUndefined()
  },

  'the next owner ends the admissions of turns that were not stored': async ({ store, restart }) => {
    const three = [limits('ann', { turnsInFlight: 3 })]
    const number = await keepOne(store, 'm1')
    await take(store, `inbox:${number}`, three)
    await take(store, 'stored', three)
    await store.turns.enqueue(queuedTurn('stored'))
    await take(store, 'lost', three)
    const owned = await own(await restart())
    expect(await take(owned, 'next', three)).toMatchObject({ limit: 'turns_in_flight' })
    await owned.admissions.recover(['lost'])
    expect(await take(owned, 'next', three)).toMatchObject({ limit: 'turns_in_flight' })
    await owned.admissions.recover([])
    expect(await take(owned, 'next', three)).toBeUndefined()
    expect(await take(owned, 'more', three)).toMatchObject({ limit: 'turns_in_flight' })
  },

  'a pool counts the turns of all its clients': async ({ store }) => {
    const pool = limits('strangers', { turnsPerHour: 3 })
    const of = (name: string) => [limits(name, { turnsPerHour: 2 }), pool]
    for (const [id, name] of [
      ['a1', 'a'],
      ['a2', 'a'],
      ['b1', 'b'],
    ] as const)
      expect(await take(store, id, of(name))).toBeUndefined()
    expect(await take(store, 'a3', of('a'))).toMatchObject({ key: 'a' })
    expect(await take(store, 'c1', of('c'))).toMatchObject({ key: 'strangers', value: 3 })
  },

  'the spending of a day in UTC is kept': async ({ store, restart }) => {
    const dollar = [limits('ann', { usdPerDay: 1 })]
    await store.admissions.spend(['ann', 'strangers'], 0.75, NOON)
    expect(await store.admissions.overspent(dollar, NOON)).toBeUndefined()
    const again = await restart()
    await again.admissions.spend(['ann'], 0.25, NOON + 5)
    const exceeded = { limit: 'usd_per_day', key: 'ann', value: 1, freeAtMs: 20_001 * DAY_MS }
    expect(await again.admissions.overspent(dollar, NOON + 5)).toEqual(exceeded)
    expect(await take(again, 't1', dollar)).toEqual(exceeded)
    expect(await take(again, 't1', dollar, 20_001 * DAY_MS)).toBeUndefined()
    expect(await again.admissions.overspent([limits('strangers', { usdPerDay: 1 })], NOON)).toBeUndefined()
  },

  'a client that stands twice among those who pay pays once': async ({ store: { admissions } }) => {
    await admissions.spend([], 5, NOON)
    await admissions.spend(['bob', 'ann', 'bob'], 0.75, NOON)
    for (const key of ['ann', 'bob']) {
      expect(await admissions.overspent([limits(key, { usdPerDay: 1 })], NOON)).toBeUndefined()
      expect(await admissions.overspent([limits(key, { usdPerDay: 0.75 })], NOON)).toMatchObject({ key })
    }
  },

  'a spent day comes before a turn in flight': async ({ store }) => {
    const both = [limits('ann', { turnsInFlight: 1, usdPerDay: 1 })]
    await take(store, 't1', both)
    expect(await take(store, 't2', both)).toMatchObject({ limit: 'turns_in_flight' })
    await store.admissions.spend(['ann'], 1, NOON)
    expect(await take(store, 't2', both)).toMatchObject({ limit: 'usd_per_day' })
  },

  'a notice is queued with the record that makes it no news': async ({ store: { admissions, outbox } }) => {
    const held = { client: 'notice:a', cause: 'notice:refused', sinceMs: NOON, untilMs: NOON } as const
    const news = { held, quietMs: HOUR_MS, notice: [reply('refused')] }
    expect(await outbox.addNews(news)).toEqual([expect.any(Number)])
    expect(await outbox.addNews(news)).toBeUndefined()
    expect(await admissions.hold(held, HOUR_MS)).toBe(false)
    expect(await outbox.addNews({ ...news, held: { ...held, client: 'notice:b' }, notice: [] })).toEqual([])
    expect(await outbox.list({ limit: 5 })).toMatchObject([{ text: 'refused', state: 'queued' }])
  },

  'who is held back is news once within the time, and is listed until it ends': async ({ store: { admissions } }) => {
    const held = { client: 'ann', cause: 'turns_per_hour', sinceMs: NOON, untilMs: NOON + 100 } as const
    expect(await admissions.hold(held, HOUR_MS)).toBe(true)
    expect(await admissions.hold({ ...held, sinceMs: NOON + 50, untilMs: NOON + 150 }, HOUR_MS)).toBe(false)
    expect(await admissions.hold({ ...held, cause: 'usd_per_day' }, HOUR_MS)).toBe(true)
    expect(await admissions.list(NOON + 99, 1)).toHaveLength(1)
    expect(await admissions.list(NOON + 99, 10)).toEqual([held, { ...held, cause: 'usd_per_day' }])
    expect(await admissions.list(NOON + 100, 10)).toEqual([])
    expect(await admissions.hold({ ...held, sinceMs: NOON + HOUR_MS, untilMs: NOON + HOUR_MS + 1 }, HOUR_MS)).toBe(true)
    // The clock was set back.
    expect(await admissions.hold({ ...held, sinceMs: 5, untilMs: 6 }, HOUR_MS)).toBe(true)
  },

  'a refused message ends as limited, with its notice once': async ({ store, restart }) => {
    const [one, two] = [await keepOne(store, 'm1'), await keepOne(store, 'm2')]
    const held = { client: 'ann', cause: 'turns_per_hour', sinceMs: NOON, untilMs: NOON + 100 } as const
    const refused = { error: 'turns_per_hour', atMs: NOON, news: { held, quietMs: HOUR_MS, notice: [reply('too many')] } }
    const first = await store.inbox.limit(one, refused)
    expect(first).toEqual({ isNews: true, replies: [expect.any(Number)] })
    expect(await store.inbox.limit(one, refused)).toEqual({ isNews: false, replies: [] })
    expect(await store.inbox.limit(two, refused)).toEqual({ isNews: false, replies: [] })
    const again = await restart()
    expect(await again.inbox.get(one)).toMatchObject({ state: 'limited', error: 'turns_per_hour', endedAtMs: NOON, turnId: null })
    expect((await again.inbox.get(one))?.replies).toMatchObject([{ text: 'too many', state: 'queued' }])
    expect(await again.inbox.list({ limit: 9, state: 'limited' })).toHaveLength(2)
    expect(await again.inbox.counts()).toEqual({ pending: 0, running: 0, dead: 0 })
    expect(await again.inbox.replay(two)).toBe(true)
    expect(await again.admissions.loopState(two)).toMatchObject({ isAdmitted: true })
    expect(await again.inbox.start(two, 'turn', STARTS_MAX)).toMatchObject({ message: inbound('m2') })
  },

  'a message that is given up or tried again tells its sender in the same commit, and once': async ({ store, restart }) => {
    const [one, two, three] = [await keepOne(store, 'm1'), await keepOne(store, 'm2'), await keepOne(store, 'm3')]
    const held = { client: 'roomchat:room', sinceMs: NOON, untilMs: NOON }
    const waiting = { held: { ...held, cause: 'waiting' as const }, quietMs: HOUR_MS, notice: [reply('wait')] }
    const unanswered = { held: { ...held, cause: 'unanswered' as const }, quietMs: HOUR_MS, notice: [reply('no answer')] }
    const { inbox, admissions } = store
    await inbox.start(one, 'turn-1', STARTS_MAX)
    expect(await inbox.retry(one, { error: 'away', atMs: NOON, uncounted: true, news: waiting })).toEqual([expect.any(Number)])
    expect(await inbox.get(one)).toMatchObject({
      state: 'pending',
      attempts: 0,
      error: 'away',
      replies: [{ text: 'wait', state: 'queued' }],
    })
    // Nothing runs, so that nothing is tried again.
    expect(await inbox.retry(two, { error: 'away', atMs: NOON, news: { ...waiting, held: { ...waiting.held, client: 'other' } } })).toEqual(
      [],
    )
    await inbox.start(two, 'turn-2', STARTS_MAX)
    expect(await inbox.retry(two, { error: 'away', atMs: NOON, news: waiting })).toEqual([])
    expect(await inbox.markDead(two, { error: 'refused', atMs: NOON, news: unanswered })).toEqual([expect.any(Number)])
    expect(await inbox.markDead(two, { error: 'again', atMs: NOON, news: { ...unanswered, quietMs: 0 } })).toEqual([])
    expect(await inbox.markDead(three, { error: 'refused', atMs: NOON, news: unanswered })).toEqual([])
    expect(await admissions.list(NOON, 10)).toEqual([])
    const again = await restart()
    expect(await again.inbox.get(two)).toMatchObject({ state: 'dead', error: 'refused', replies: [{ text: 'no answer' }] })
    expect(await again.turns.get('turn-2')).toMatchObject({ status: 'failed' })
    expect(await again.inbox.get(three)).toMatchObject({ state: 'dead', replies: [] })
  },

  'quick messages of a session are counted once each': async ({ store }) => {
    const [one, two, three] = [await keepOne(store, 'm1'), await keepOne(store, 'm2'), await keepOne(store, 'm3')]
    const { admissions } = store
    expect(await admissions.loopState(one)).toEqual({
      afterAnswerMs: null,
      quick: 0,
      pausedUntilMs: null,
      sender: inbound('m1').sender,
      account: 'bot',
      isAdmitted: false,
    })
    const room = { session: 'roomchat:room', series: 'roomchat:room' }
    await admissions.countQuick(room, two, 4)
    await admissions.countQuick(room, two, 5)
    expect(await admissions.loopState(two)).toMatchObject({ quick: 0 })
    expect(await admissions.loopState(three)).toMatchObject({ quick: 4 })
    // A command has a lane of its own.
    const another = { session: 'another session', series: 'another session' }
    await admissions.countQuick(another, one, 7)
    expect(await admissions.loopState(three, another)).toMatchObject({ quick: 7 })
    await admissions.countQuick(room, three, 0)
    expect(await admissions.loopState(three)).toMatchObject({ quick: 0 })
    await store.inbox.done(three, 1)
    expect(await admissions.loopState(three)).toBeUndefined()
  },

  'the writers of a session are counted and paused each alone, until a message of one of them was slow': async ({ store }) => {
    const [one, two, three, four] = [
      await keepOne(store, 'm1'),
      await keepOne(store, 'm2'),
      await keepOne(store, 'm3'),
      await keepOne(store, 'm4'),
    ]
    const { admissions } = store
    const session = 'roomchat:room'
    const [ann, bob] = [
      { session, series: 'ann in the room' },
      { session, series: 'bob in the room' },
    ]
    await answerOne(store, 'm0', [], { sessionId: session })
    expect(await admissions.loopState(one, ann)).toMatchObject({ quick: 0, afterAnswerMs: expect.any(Number) })
    await admissions.countQuick(ann, one, 4)
    // The answer was followed, by whichever writer.
    expect(await admissions.loopState(two, ann)).toMatchObject({ quick: 4, afterAnswerMs: null })
    expect(await admissions.loopState(two, bob)).toMatchObject({ quick: 0, afterAnswerMs: null })
    await store.inbox.start(one, 'turn of m1', STARTS_MAX)
    const end = { sessionId: session, endedAtMs: NOON + 100_000, delivery: { inbox: one, replies: [] } }
    await store.turns.finish(turnEnd('turn of m1', end))
    expect(await admissions.loopState(two, bob)).toMatchObject({ quick: 0, afterAnswerMs: expect.any(Number) })
    await admissions.countQuick(bob, two, 1)
    expect(await admissions.loopState(three, ann)).toMatchObject({ quick: 4, afterAnswerMs: null })
    expect(await admissions.loopState(three, bob)).toMatchObject({ quick: 1 })
    await admissions.hold({ client: ann.series, cause: 'loop', sinceMs: NOON, untilMs: NOON + HOUR_MS }, 1)
    expect(await admissions.loopState(three, ann)).toMatchObject({ pausedUntilMs: NOON + HOUR_MS })
    expect(await admissions.loopState(three, bob)).toMatchObject({ pausedUntilMs: null })
    expect(await admissions.reset(ann.series)).toBe(true)
    expect(await admissions.loopState(three, ann)).toMatchObject({ quick: 0, pausedUntilMs: null })
    await admissions.countQuick(ann, three, 0)
    expect(await admissions.loopState(four, bob)).toMatchObject({ quick: 0, afterAnswerMs: null })
    await admissions.countQuick(bob, four, 1)
    const five = await keepOne(store, 'm5')
    expect(await admissions.loopState(five, bob)).toMatchObject({ quick: 1 })
    expect(await admissions.loopState(five, ann)).toMatchObject({ quick: 0 })
    await admissions.countQuick(ann, four, 2)
    await admissions.forgetQuick(ann, four)
    expect(await admissions.loopState(five, ann)).toMatchObject({ quick: 0, afterAnswerMs: null })
    expect(await admissions.loopState(five, bob)).toMatchObject({ quick: 1 })
  },

  'an admitted client is held back no longer, and a further notice is not due': async ({ store }) => {
    const { admissions } = store
    const held = { client: 'ann', cause: 'turns_per_hour', sinceMs: NOON, untilMs: NOON + 100 } as const
    await admissions.hold(held, HOUR_MS)
    await admissions.hold({ ...held, client: 'bob', cause: 'loop' }, HOUR_MS)
    for (const name of ['ann', 'bob']) await take(store, name, [limits(name, { turnsPerHour: 1 })], NOON + 10)
    expect(await admissions.list(NOON + 10, 9)).toMatchObject([{ client: 'bob' }])
    expect(await admissions.hold({ ...held, sinceMs: NOON + 20 }, HOUR_MS)).toBe(false)
    expect(await admissions.list(NOON + 20, 9)).toHaveLength(2)
  },

  'a reset forgets the turns, the spending and the records of a client': async ({ store }) => {
    const { admissions } = store
    const one = [limits('ann', { turnsPerHour: 1, usdPerDay: 1 })]
    await take(store, 't1', one)
    await admissions.spend(['ann'], 1, NOON)
    await admissions.hold({ client: 'ann', cause: 'loop', sinceMs: NOON, untilMs: NOON + 9 }, 1)
    expect(await admissions.reset('ann')).toBe(true)
    expect(await admissions.list(NOON, 9)).toEqual([])
    expect(await take(store, 't2', one)).toBeUndefined()
    expect(await admissions.reset('bob')).toBe(false)
  },

  'a notice to operators is remembered for eight days, and another one for a day': async ({ store }) => {
    const causes = ['notice:refused', 'unanswered'] as const
    const isNews = (sinceMs: number) =>
      Promise.all(causes.map((cause) => store.admissions.hold({ client: 'a', cause, sinceMs, untilMs: sinceMs }, 30 * 24 * HOUR_MS)))
    await isNews(NOON)
    await store.prune({ ...retention, nowMs: NOON + 24 * HOUR_MS })
    expect(await isNews(NOON + 1)).toEqual([false, false])
    await store.prune({ ...retention, nowMs: NOON + 7 * 24 * HOUR_MS })
    expect(await isNews(NOON + 2)).toEqual([false, true])
    await store.prune({ ...retention, nowMs: NOON + 9 * 24 * HOUR_MS })
    expect(await isNews(NOON + 3)).toEqual([true, true])
  },

  'old admissions are pruned, open ones stay': async ({ store }) => {
    const two = [limits('ann', { turnsInFlight: 2 })]
    const old = 1000
    await take(store, 't1', two, old)
    await take(store, 't2', two, old)
    await store.turns.finish(turnEnd('t1'))
    await store.admissions.spend(['ann'], 1, old)
    await store.prune({ ...retention, nowMs: NOON })
    expect(await store.admissions.overspent([limits('ann', { usdPerDay: 1 })], old)).toBeUndefined()
    expect(await take(store, 't3', two, NOON)).toBeUndefined()
    expect(await take(store, 't4', two, NOON)).toMatchObject({ limit: 'turns_in_flight' })
  },
}

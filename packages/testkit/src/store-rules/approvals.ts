/** Rules for approvals: each is decided once, by any decider and in spite of crashes. */
import type { Approval, ApprovalKey, Decision, Store } from '@sluice/sdk'
import { expect } from 'vitest'
import { asked, decision } from './approval-samples.ts'
import { keepOne, reply, replyParts, STARTS_MAX } from './delivery-samples.ts'
import { ODD_TEXTS, queuedTurn, turnEnd } from './samples.ts'
import { own, type StoreRules } from './store-bench.ts'

const key = (runId: string, stepId = 'step-1'): ApprovalKey => ({ runId, stepId })
const idsOf = (approvals: readonly Approval[]): string[] => approvals.map(({ runId }) => runId)
const pending = { state: 'pending', by: null, byStanding: null, feedback: null, decidedAtMs: null, acknowledgedAtMs: null } as const

async function openAll(store: Store, runs: readonly string[]): Promise<void> {
  for (const run of runs) await store.approvals.open(asked(run), [])
}

export const approvalRules: StoreRules = {
  'opening an approval queues its prompts in the same commit': async ({ store, otherProcess }) => {
    const prompts = [...replyParts(['one', 'two'], { turnId: null }), reply('three', { channel: 'bizchat', to: { to: 'other' } })]
    const { opened, approval } = await store.approvals.open(asked('r1'), prompts)
    expect(opened).toBe(true)
    const numbers = (await (await own(store)).outbox.waiting({ after: 0, limit: 10 })).map(({ number }) => number)
    expect(numbers).toHaveLength(3)
    expect(approval).toEqual({
      ...asked('r1'),
      ...pending,
      prompts: prompts.map(({ channel, account, to }, at) => ({
        number: numbers[at],
        channel,
        account,
        to,
        providerId: null,
        sentAtMs: null,
      })),
    })
    const other = await otherProcess()
    expect(await other.approvals.get(key('r1'))).toEqual(approval)
    expect(await other.approvals.byToken(approval.token)).toEqual(approval)
    expect(await other.outbox.get(numbers[1] ?? 0)).toMatchObject({ text: 'two', part: 2, parts: 2, state: 'queued' })
    expect(await other.approvals.get(key('r1', 'other'))).toBeUndefined()
    expect(await other.approvals.byToken('other')).toBeUndefined()
  },

  'the end of a turn cancels the pending approvals of its calls only': async ({ store }) => {
    const ask = (runId: string, part: Parameters<typeof asked>[1] = {}) => store.approvals.open(asked(runId, { gate: 'tool', ...part }), [])
    const withdrawn = { state: 'cancelled', by: 'system' }
    await store.turns.enqueue(queuedTurn('finished'))
    const buried = await keepOne(store, 'm1')
    await store.inbox.start(buried, 'buried', STARTS_MAX)
    const done = await keepOne(store, 'm2')
    await store.inbox.start(done, 'done', STARTS_MAX)
    await store.turns.enqueue(queuedTurn('lives'))
    for (const run of ['finished', 'buried', 'done', 'lives']) await ask(run)
    await ask('finished', { stepId: 'answered' })
    await store.approvals.decide(key('finished', 'answered'), decision('approved'))
    await ask('finished', { stepId: 'other gate', gate: 'event' })
    await store.turns.finish(turnEnd('finished', { endedAtMs: 5_000 }))
    await store.inbox.markDead(buried, { error: 'e', atMs: 6_000 })
    await store.inbox.done(done, 7_000)
    expect(await store.approvals.get(key('finished'))).toMatchObject({ ...withdrawn, decidedAtMs: 5_000, acknowledgedAtMs: null })
    expect(await store.approvals.get(key('buried'))).toMatchObject(withdrawn)
    expect(await store.approvals.get(key('done'))).toMatchObject(withdrawn)
    expect(await store.approvals.get(key('lives'))).toMatchObject({ state: 'pending' })
    expect(await store.approvals.get(key('finished', 'answered'))).toMatchObject({ state: 'approved' })
    expect(await store.approvals.get(key('finished', 'other gate'))).toMatchObject({ state: 'pending' })
    expect(await store.approvals.decide(key('buried'), decision('approved'))).toMatchObject({ won: false, approval: withdrawn })
  },

  'opening a known approval changes nothing and returns it': async ({ store, restart }) => {
    await store.approvals.open(asked('r1'), [reply('first')])
    const again = asked('r1', { title: 'other', token: 'other' })
    expect(await store.approvals.open(again, [reply('second')])).toMatchObject({ opened: false, approval: { title: 'Deploy?' } })
    await store.approvals.decide(key('r1'), decision('rejected'))
    const { approvals, outbox } = await restart()
    const known = await approvals.open(again, [reply('third')])
    expect(known).toMatchObject({ opened: false, approval: { state: 'rejected', prompts: [{ providerId: null }] } })
    expect(await outbox.list({ limit: 10 })).toHaveLength(1)
  },

  'run id and step id together are the key': async ({ store: { approvals } }) => {
    const keys = [key('a', 'bc'), key('ab', 'c'), key('abc', ''), key('', 'abc'), key('a', 'b'), key('a\0', 'b')]
    for (const one of keys) expect(await approvals.open(asked(one.runId, one), [])).toMatchObject({ opened: true, approval: one })
    for (const one of keys) expect(await approvals.open(asked(one.runId, one), [])).toMatchObject({ opened: false, approval: one })
  },

  'of many concurrent opens of one approval exactly one succeeds': async ({ store, otherProcess }) => {
    const other = await otherProcess()
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, at) => (at % 2 ? store : other).approvals.open(asked('r1'), [reply('a')])),
    )
    expect(results.filter(({ opened }) => opened)).toHaveLength(1)
    expect(await store.outbox.list({ limit: 10 })).toHaveLength(1)
  },

  'stores an approval without a time limit, and its keyword lists': async ({ store: { approvals } }) => {
    const given = asked('r1', { expiresAtMs: null, approveKeywords: [], rejectKeywords: ['näh', 'no "way"'], gate: 'event' })
    expect((await approvals.open(given, [])).approval).toEqual({ ...given, ...pending, prompts: [] })
  },

  'stores odd texts in approvals and decisions': async ({ store: { approvals } }) => {
    for (const [at, text] of ODD_TEXTS.map((odd) => odd.toWellFormed()).entries()) {
      const given = asked(`r${at}`, { title: text, message: text, workflow: text })
      const { approval } = await approvals.open(given, [])
      expect(approval).toMatchObject(given)
      expect(await approvals.decide(key(`r${at}`), decision('approved', { feedback: text }))).toMatchObject({
        approval: { feedback: text },
      })
    }
  },

  'the first decision wins and survives a restart': async ({ store, restart }) => {
    await store.approvals.open(asked('r1'), [])
    const first = decision('approved', { feedback: 'go on', atMs: 5_000 })
    const taken = {
      ...asked('r1'),
      state: 'approved',
      by: first.by,
      byStanding: 'operator',
      feedback: 'go on',
      decidedAtMs: 5_000,
      acknowledgedAtMs: null,
      prompts: [],
    }
    expect(await store.approvals.decide(key('r1'), first)).toEqual({ won: true, approval: taken })
    const { approvals } = await restart()
    for (const state of ['approved', 'rejected', 'expired', 'cancelled'] as const) {
      const late = decision(state, { by: 'device:d1', feedback: 'late', atMs: 9_000 })
      expect(await approvals.decide(key('r1'), late)).toEqual({ won: false, approval: taken })
    }
    expect(await approvals.get(key('r1'))).toEqual(taken)
  },

  'an expired or cancelled approval cannot be approved': async ({ store: { approvals } }) => {
    for (const state of ['expired', 'cancelled'] as const) {
      await approvals.open(asked(state), [])
      expect(await approvals.decide(key(state), decision(state, { by: 'system' }))).toMatchObject({ won: true })
      expect(await approvals.decide(key(state), decision('approved'))).toMatchObject({ won: false, approval: { state, by: 'system' } })
    }
  },

  'a decision after the time limit finds the approval expired': async ({ store, restart }) => {
    await openAll(store, ['a', 'b', 'c', 'd'])
    await store.approvals.open(asked('e', { expiresAtMs: null }), [])
    const inbox = await keepOne(store, 'm1')
    const late = { atMs: 61_000 }
    expect(await store.approvals.decide(key('a'), decision('approved', { atMs: 60_999 }))).toMatchObject({ won: true })
    const over = { state: 'expired', by: 'timeout', feedback: null, decidedAtMs: 61_000 }
    expect(await store.approvals.decide(key('b'), decision('approved', { ...late, feedback: 'ok' }), inbox)).toMatchObject({
      won: false,
      approval: over,
    })
    expect(await store.approvals.decide(key('c'), decision('rejected', late))).toMatchObject({ won: false, approval: over })
    const end = decision('cancelled', { ...late, by: 'system' })
    expect(await store.approvals.decide(key('d'), end)).toMatchObject({ won: true, approval: { state: 'cancelled' } })
    expect(await store.approvals.decide(key('e'), decision('approved', late))).toMatchObject({ won: true })
    const next = await restart()
    expect(await next.approvals.get(key('b'))).toMatchObject(over)
    expect(await next.inbox.get(inbox)).toMatchObject({ state: 'pending' })
  },

  'of many decisions in two processes one wins and all return it': async ({ store, otherProcess }) => {
    const other = await otherProcess()
    await openAll(
      store,
      Array.from({ length: 20 }, (_, at) => `r${at}`),
    )
    const states: Decision['state'][] = ['approved', 'rejected', 'expired', 'cancelled']
    for (let at = 0; at < 20; at++) {
      const results = await Promise.all(
        states.flatMap((state, by) =>
          [store, other].map((one, side) => one.approvals.decide(key(`r${at}`), decision(state, { by: `${by} ${side}` }))),
        ),
      )
      const [winner, ...others] = results.filter((result) => result?.won)
      expect(others).toEqual([])
      for (const result of results) expect(result?.approval).toEqual(winner?.approval)
      expect(await other.approvals.get(key(`r${at}`))).toEqual(winner?.approval)
    }
  },

  'deciding an unknown approval returns nothing': async ({ store }) => {
    const inbox = await keepOne(store, 'm1')
    expect(await store.approvals.decide(key('r1'), decision('approved'), inbox)).toBeUndefined()
    expect(await store.approvals.get(key('r1'))).toBeUndefined()
    expect(await store.inbox.get(inbox)).toMatchObject({ state: 'pending' })
    expect(await store.approvals.acknowledge(key('r1'), 3_000, [reply('a')])).toEqual([])
  },

  'a decision completes the message that made it, but not a late one': async ({ store, restart }) => {
    await store.approvals.open(asked('r1'), [])
    const [first, second] = [await keepOne(store, 'm1'), await keepOne(store, 'm2')]
    await store.inbox.start(second, 't2', STARTS_MAX)
    await store.approvals.decide(key('r1'), decision('approved', { atMs: 3_000 }), first)
    await store.approvals.decide(key('r1'), decision('rejected', { atMs: 4_000 }), second)
    const { inbox } = await own(await restart())
    expect(await inbox.get(first)).toMatchObject({ state: 'done', endedAtMs: 3_000, turnId: null, replies: [] })
    expect(await inbox.get(second)).toMatchObject({ state: 'running' })
    expect((await inbox.waiting({ after: 0, limit: 10 })).map(({ number }) => number)).toEqual([second])
  },

  'the reply to a late answer is queued once, as its message ends': async ({ store, restart }) => {
    const late = await keepOne(store, 'm1')
    await store.inbox.start(late, 't1', STARTS_MAX)
    expect(await store.inbox.done(late, 4_000, [reply('too late')])).toHaveLength(1)
    expect(await store.inbox.done(late, 5_000, [reply('again')])).toEqual([])
    const { inbox, outbox, turns } = await own(await restart())
    expect(await inbox.get(late)).toMatchObject({ state: 'done', endedAtMs: 4_000 })
    expect(await turns.get('t1')).toMatchObject({ status: 'aborted', endedAtMs: 4_000 })
    expect((await outbox.waiting({ after: 0, limit: 10 })).length).toBe(1)
  },

  'a decision and its message are committed together or not at all': async ({ store }) => {
    await store.approvals.open(asked('r1'), [])
    const inbox = await keepOne(store, 'm1')
    const poison = { by: 'x', state: 'approved', feedback: {} as unknown as string, atMs: 1 } as const
    await expect(store.approvals.decide(key('r1'), poison, inbox)).rejects.toThrow()
    expect(await store.approvals.get(key('r1'))).toMatchObject({ state: 'pending' })
    expect(await store.inbox.get(inbox)).toMatchObject({ state: 'pending' })
    expect(await store.approvals.decide(key('r1'), decision('approved'), inbox)).toMatchObject({ won: true })
  },

  'the reply about a decision is queued once, when its gate accepts it': async ({ store, restart }) => {
    await store.approvals.open(asked('r1'), [])
    expect(await store.approvals.acknowledge(key('r1'), 3_000, [reply('early')])).toEqual([])
    await store.approvals.decide(key('r1'), decision('approved'))
    const numbers = await store.approvals.acknowledge(key('r1'), 4_000, [reply('approved', { extras: { edits: 'p1' } }), reply('also')])
    expect(numbers).toHaveLength(2)
    const { approvals, outbox } = await restart()
    expect(await approvals.acknowledge(key('r1'), 5_000, [reply('again')])).toEqual([])
    expect(await approvals.get(key('r1'))).toMatchObject({ state: 'approved', acknowledgedAtMs: 4_000 })
    expect((await outbox.list({ limit: 10 })).map(({ text }) => text)).toEqual(['also', 'approved'])
    expect(await outbox.start(numbers[0] ?? 0)).toMatchObject({ extras: { edits: 'p1' } })
  },

  'of two processes that settle an approval one queues the reply': async ({ store, otherProcess }) => {
    const other = await otherProcess()
    await store.approvals.open(asked('r1'), [])
    await store.approvals.decide(key('r1'), decision('approved'))
    await Promise.all([store, other, store, other].map(({ approvals }) => approvals.acknowledge(key('r1'), 3_000, [reply('a')])))
    expect(await store.outbox.list({ limit: 10 })).toHaveLength(1)
  },

  'a prompt gets its platform id when it is sent, however late': async ({ store, restart }) => {
    await store.approvals.open(asked('r1'), [reply('a'), reply('b')])
    await store.approvals.open(asked('r2'), [reply('c')])
    const [first = 0, second = 0] = (await (await own(store)).outbox.waiting({ after: 0, limit: 10 })).map(({ number }) => number)
    await store.outbox.start(second)
    await store.outbox.sent(second, { providerId: 'p2', atMs: 3_000 })
    await store.outbox.start(first)
    await store.outbox.giveUp(first, { state: 'ambiguous', error: 'e', atMs: 4_000 })
    const idsIn = async (approvals: Store['approvals'], run: string) =>
      (await approvals.get(key(run)))?.prompts.map(({ providerId }) => providerId)
    expect(await idsIn(store.approvals, 'r1')).toEqual([null, 'p2'])
    const { approvals, outbox } = await own(await restart())
    await outbox.replay(first)
    await outbox.start(first)
    await outbox.sent(first, { providerId: 'p1', atMs: 5_000 })
    await outbox.sent(first, { providerId: 'late', atMs: 6_000 })
    expect(await idsIn(approvals, 'r1')).toEqual(['p1', 'p2'])
    expect(await idsIn(approvals, 'r2')).toEqual([null])
    expect((await approvals.unfinished({ after: null, limit: 10 }))[0]?.prompts).toMatchObject([
      { providerId: 'p1', sentAtMs: 5_000 },
      { providerId: 'p2', sentAtMs: 3_000 },
    ])
  },

  'lists approvals of a state newest first, in pages': async ({ store: { approvals }, store }) => {
    await openAll(store, ['a', 'b', 'c', 'd', 'e'])
    await approvals.decide(key('b'), decision('approved'))
    await approvals.decide(key('d'), decision('approved'))
    await approvals.decide(key('e'), decision('expired'))
    await approvals.acknowledge(key('d'), 3_000, [])
    const list = async (filter: object) => idsOf(await approvals.list({ limit: 10, ...filter }))
    expect(await list({})).toEqual(['e', 'd', 'c', 'b', 'a'])
    expect(await list({ limit: 2 })).toEqual(['e', 'd'])
    expect(await list({ limit: 2, before: key('d') })).toEqual(['c', 'b'])
    expect(await list({ before: key('a') })).toEqual([])
    expect(await list({ before: key('unknown') })).toEqual([])
    expect(await list({ state: 'pending' })).toEqual(['c', 'a'])
    expect(await list({ runId: 'b' })).toEqual(['b'])
    expect(await list({ state: 'approved', before: key('d') })).toEqual(['b'])
    expect(await list({ state: 'cancelled' })).toEqual([])
  },

  'lists pending and unfinished approvals oldest first, in pages': async ({ store, restart }) => {
    await openAll(store, ['a', 'b', 'c', 'd'])
    for (const run of ['b', 'c']) await store.approvals.decide(key(run), decision('rejected'))
    await store.approvals.acknowledge(key('c'), 3_000, [])
    const { approvals } = await own(await restart())
    const unfinished = async (page: Parameters<typeof approvals.unfinished>[0]) =>
      (await approvals.unfinished(page)).map(({ runId, state }) => [runId, state])
    expect(await unfinished({ after: null, limit: 2 })).toEqual([
      ['a', 'pending'],
      ['b', 'rejected'],
    ])
    expect(await unfinished({ after: key('b'), limit: 2 })).toEqual([['d', 'pending']])
    expect(await unfinished({ after: key('d'), limit: 2 })).toEqual([])
    expect(await unfinished({ after: key('nobody'), limit: 2 })).toEqual([])
    expect(await unfinished({ after: null, limit: 2, decided: true })).toEqual([['b', 'rejected']])
  },

  'counts pending approvals': async ({ store: { approvals }, store }) => {
    expect(await approvals.counts()).toEqual({ pending: 0 })
    await openAll(store, ['a', 'b', 'c'])
    await approvals.decide(key('b'), decision('approved'))
    expect(await approvals.counts()).toEqual({ pending: 2 })
  },
}

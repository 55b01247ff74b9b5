/** Rules for turns. */
import { expect } from 'vitest'
import { answerOne, inbound, keepOne, STARTS_MAX } from './delivery-samples.ts'
import { assistant, failedTurn, ODD_TEXTS, queuedTurn, turnEnd, user } from './samples.ts'
import { own, type StoreRules } from './store-bench.ts'

const HOUR_MS = 3_600_000

export const turnRules: StoreRules = {
  'an enqueued turn is stored and waits': async ({ store: { turns }, otherProcess }) => {
    await turns.enqueue(queuedTurn('t1', { context: { reply_to: ['x', 1] } }))
    const row = {
      id: 't1',
      agent: 'main',
      sessionId: 'room',
      owner: 'device',
      source: 'webhook',
      status: 'queued',
      input: 'input of t1',
      response: null,
      model: null,
      finishReason: null,
      error: null,
      inputTokens: 0,
      outputTokens: 0,
      costUsd: 0,
      attempts: 0,
      starts: 0,
      createdAtMs: 1_000,
      endedAtMs: null,
      inbox: null,
      steps: [],
      context: { reply_to: ['x', 1] },
    }
    expect(await turns.get('t1')).toEqual(row)
    expect(await (await otherProcess()).turns.get('t1')).toEqual(row)
    expect(await turns.get('t2')).toBeUndefined()
  },

  'a second turn with the same id is a conflict and changes nothing': async ({ store: { turns } }) => {
    await turns.enqueue(queuedTurn('t1'))
    await expect(turns.enqueue(queuedTurn('t1', { input: 'other' }))).rejects.toMatchObject({ code: 'conflict' })
    expect((await turns.get('t1'))?.input).toBe('input of t1')
  },

  'lists the sessions with work that has not ended': async ({ store, restart }) => {
    await store.turns.enqueue(queuedTurn('t1'))
    await store.turns.enqueue(queuedTurn('t2'))
    await store.turns.enqueue(queuedTurn('alone', { sessionId: null, owner: 'ann', agent: 'help' }))
    await store.turns.start('t2')
    const number = await keepOne(store, 'm1')
    const open = async () => (await store.turns.openSessions()).toSorted()
    expect(await open()).toEqual(['agent:help/ann/', 'room', 'roomchat:room'])
    for (const id of ['t1', 't2', 'alone']) await store.turns.finish(turnEnd(id))
    expect(await open()).toEqual(['roomchat:room'])
    expect(await (await restart()).turns.openSessions()).toEqual(['roomchat:room'])
    expect(number).toBeGreaterThan(0)
  },

  'counts each start': async ({ store: { turns } }) => {
    await turns.enqueue(queuedTurn('t1'))
    expect(await turns.start('t1')).toBe(1)
    expect(await turns.start('t1')).toBe(2)
    expect(await turns.get('t1')).toMatchObject({ status: 'running', attempts: 2 })
  },

  'an attempt that awaits approval counts only after it continues': async ({ store: { turns }, restart }) => {
    await turns.enqueue(queuedTurn('t1'))
    await turns.start('t1')
    await turns.waits('t1', true)
    expect((await turns.get('t1'))?.attempts).toBe(0)
    const cut = await restart()
    expect(await cut.turns.start('t1')).toBe(1)
    // The caller needs every start, counted or not, to know whether the turn may already have acted.
    expect(await cut.turns.get('t1')).toMatchObject({ attempts: 1, starts: 2 })
    await cut.turns.waits('t1', true)
    await cut.turns.waits('t1', false)
    expect(await cut.turns.start('t1')).toBe(2)
    await cut.turns.finish(turnEnd('t1', { attempts: 2 }))
    for (const id of ['t1', 'unknown']) await cut.turns.waits(id, true)
    expect(await cut.turns.get('t1')).toMatchObject({ attempts: 2, starts: 3 })
  },

  'only an unfinished turn can be started or checkpointed': async ({ store: { turns } }) => {
    await turns.finish(turnEnd('ended'))
    for (const id of ['ended', 'unknown']) {
      await expect(turns.start(id)).rejects.toMatchObject({ code: 'not_found' })
      await expect(turns.checkpoint(id, [])).rejects.toMatchObject({ code: 'not_found' })
    }
    expect((await turns.get('ended'))?.status).toBe('done')
  },

  'lists unfinished turns oldest first with their last checkpoint': async ({ store: { turns }, restart }) => {
    await turns.enqueue(queuedTurn('young', { createdAtMs: 30 }))
    await turns.enqueue(queuedTurn('old', { createdAtMs: 10 }))
    await turns.enqueue(queuedTurn('ended', { createdAtMs: 20 }))
    await turns.start('old')
    await turns.checkpoint('old', [user('first')])
    await turns.checkpoint('old', ODD_TEXTS.map(assistant))
    await turns.finish(turnEnd('ended'))
    const again = (await own(await restart())).turns
    const left = await again.unfinished(10)
    expect(left.map(({ id, status, attempts }) => [id, status, attempts])).toEqual([
      ['old', 'running', 1],
      ['young', 'queued', 0],
    ])
    expect(left.map(({ checkpoint }) => checkpoint)).toEqual([ODD_TEXTS.map(assistant), []])
    expect(await again.unfinished(1)).toHaveLength(1)
  },

  'a turn keeps its agent until after its end, and its cost counts towards the limits of all': async ({ store }) => {
    const { turns } = await own(store)
    const sessionId = 'agent:support/device/room'
    await turns.enqueue(queuedTurn('queued', { agent: 'support', sessionId }))
    expect(await turns.unfinished(10)).toMatchObject([{ id: 'queued', agent: 'support' }])
    for (const id of ['queued', 'direct']) {
      await turns.finish(turnEnd(id, { agent: 'support', sessionId }))
      expect(await turns.get(id)).toMatchObject({ agent: 'support', sessionId, status: 'done' })
    }
    expect(await turns.spentUsd(0)).toBe(0.5)
  },

  'an ended turn is stored as it ended, queued before or not': async ({ store }) => {
    const { turns } = await own(store)
    await turns.enqueue(queuedTurn('queued', { context: { a: 1 } }))
    await turns.checkpoint('queued', [user('x')])
    for (const id of ['queued', 'direct']) {
      await turns.finish(turnEnd(id, { attempts: 2, response: 'yes', model: 'm', endedAtMs: 5_000 }))
      expect(await turns.get(id)).toEqual({
        id,
        agent: 'main',
        sessionId: 'room',
        owner: 'device',
        source: 'webhook',
        status: 'done',
        input: `input of ${id}`,
        response: 'yes',
        model: 'm',
        finishReason: 'stop',
        error: null,
        inputTokens: 3,
        outputTokens: 5,
        costUsd: 0.25,
        attempts: 2,
        starts: 0,
        createdAtMs: 1_000,
        endedAtMs: 5_000,
        inbox: null,
        steps: [],
        context: id === 'queued' ? { a: 1 } : null,
      })
    }
    expect(await turns.unfinished(10)).toEqual([])
    await turns.finish(failedTurn('failed'))
    expect(await turns.get('failed')).toMatchObject({ status: 'failed', response: null, error: { code: 'upstream', message: 'no answer' } })
  },

  'a turn keeps how its answer ended': async ({ store: { turns } }) => {
    await turns.enqueue(queuedTurn('queued'))
    for (const id of ['queued', 'direct']) {
      await turns.finish(turnEnd(id, { finishReason: 'length' }))
      expect(await turns.get(id)).toMatchObject({ finishReason: 'length' })
    }
    await turns.finish(failedTurn('failed'))
    expect(await turns.get('failed')).toMatchObject({ finishReason: null })
  },

  'ending a turn twice is a conflict and appends nothing': async ({ store: { turns, sessions } }) => {
    await turns.finish(turnEnd('t1'))
    await expect(turns.finish(turnEnd('t1', { response: 'other' }))).rejects.toMatchObject({ code: 'conflict' })
    expect((await turns.get('t1'))?.response).toBe('response of t1')
    expect(await sessions.history('room', 10)).toHaveLength(2)
  },

  'a turn without a session is stored alone': async ({ store: { turns, sessions } }) => {
    await turns.finish(turnEnd('t1', { sessionId: null }))
    expect(await turns.get('t1')).toMatchObject({ sessionId: null, response: 'response of t1' })
    expect(await sessions.list({ limit: 10 })).toEqual([])
  },

  'a turn end is committed as a whole or not at all': async ({ store: { turns, sessions } }) => {
    const unkeepable = { ...turnEnd('bad'), messages: [{ role: 'user', content: 1n }] } as unknown as ReturnType<typeof turnEnd>
    const ends = await Promise.allSettled([turns.finish(turnEnd('t1')), turns.finish(unkeepable), turns.finish(turnEnd('t2'))])
    expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(await turns.get('bad')).toBeUndefined()
    expect(await sessions.history('room', 10)).toHaveLength(4)
  },

  'later changes to the arguments do not affect stored data': async ({ store: { turns, sessions } }) => {
    const context = { step: 1 }
    const messages = [user('as it was')]
    const writes = [turns.enqueue(queuedTurn('t1', { context })), turns.finish(turnEnd('t2', { messages }))]
    context.step = 2
    messages.push(user('too late'))
    await Promise.all(writes)
    expect((await turns.get('t1'))?.context).toEqual({ step: 1 })
    expect(await sessions.history('room', 10)).toEqual([user('as it was')])
  },

  'a turn ends even if its token counts are not numbers': async ({ store: { turns } }) => {
    await turns.finish(turnEnd('nan', { inputTokens: Number.NaN, outputTokens: Number.POSITIVE_INFINITY, costUsd: Number.NaN }))
    expect(await turns.get('nan')).toMatchObject({ status: 'done', inputTokens: 0, outputTokens: 0, costUsd: 0 })
    await turns.finish(turnEnd('huge', { inputTokens: 2 ** 60, outputTokens: 1e300 }))
    expect(await turns.get('huge')).toMatchObject({ inputTokens: 2 ** 60, outputTokens: 1e300 })
  },

  'valid texts come back unchanged, invalid ones repaired': async ({ store: { turns } }) => {
    for (const [at, text] of ODD_TEXTS.entries()) {
      await turns.finish(turnEnd(`t${at}`, { sessionId: text, input: text, response: text }))
      const valid = text.toWellFormed()
      expect(await turns.get(`t${at}`)).toMatchObject({ sessionId: valid, input: valid, response: valid })
    }
  },

  'costs are added up for each period, agent and model': async ({ store }) => {
    const { turns } = store
    await turns.finish(turnEnd('t1', { endedAtMs: 10 * HOUR_MS, costUsd: 1, model: 'a', inputTokens: 10, outputTokens: 1 }))
    await turns.finish(turnEnd('t2', { endedAtMs: 10 * HOUR_MS + 1, costUsd: 2, model: 'a', inputTokens: 20, outputTokens: 2 }))
    await turns.finish(
      turnEnd('t3', { endedAtMs: 11 * HOUR_MS, costUsd: 4, model: 'b', agent: 'support', inputTokens: 0, outputTokens: 0 }),
    )
    await turns.finish(failedTurn('t4', { endedAtMs: 12 * HOUR_MS, costUsd: 8 }))
    await turns.enqueue(queuedTurn('t5'))
    const hourly = { sinceMs: 10 * HOUR_MS, untilMs: 12 * HOUR_MS, periodMs: HOUR_MS, offsetMs: 0 }
    expect(await turns.costs(hourly)).toEqual([
      { atMs: 10 * HOUR_MS, agent: 'main', model: 'a', costUsd: 3, turns: 2, inputTokens: 30, outputTokens: 3 },
      { atMs: 11 * HOUR_MS, agent: 'support', model: 'b', costUsd: 4, turns: 1, inputTokens: 0, outputTokens: 0 },
    ])
    const daily = { sinceMs: 0, untilMs: 48 * HOUR_MS, periodMs: 24 * HOUR_MS, offsetMs: -13 * HOUR_MS }
    expect((await turns.costs(daily)).map(({ atMs, costUsd }) => [atMs / HOUR_MS, costUsd])).toEqual([
      [-13, 3],
      [11, 8],
      [11, 4],
    ])
  },

  'ended turns are listed from the latest end, page by page': async ({ store: { turns } }) => {
    for (const [id, endedAtMs] of [
      ['t1', 100],
      ['t2', 200],
      ['t3', 200],
      ['t4', 300],
    ] as const)
      await turns.finish(turnEnd(id, { endedAtMs, agent: id === 't4' ? 'support' : 'main', owner: id === 't1' ? 'alice' : 'bob' }))
    await turns.finish(failedTurn('t5', { endedAtMs: 50 }))
    await turns.enqueue(queuedTurn('t6'))
    const ids = async (filter: Parameters<typeof turns.list>[0]) => (await turns.list(filter)).map(({ id }) => id)
    expect(await ids({ limit: 3 })).toEqual(['t4', 't3', 't2'])
    expect(await ids({ limit: 3, before: { endedAtMs: 200, id: 't2' } })).toEqual(['t1', 't5'])
    expect(await ids({ limit: 9, status: 'failed' })).toEqual(['t5'])
    expect(await ids({ limit: 9, owner: 'bob', agent: 'main' })).toEqual(['t3', 't2'])
    expect(await ids({ limit: 9, sinceMs: 200 })).toEqual(['t4', 't3', 't2'])
    expect(await ids({ limit: 9, sinceMs: 100, owner: 'bob', before: { endedAtMs: 200, id: 't3' } })).toEqual(['t2'])
    const [latest] = await turns.list({ limit: 1 })
    expect(latest).toMatchObject({ id: 't4', status: 'done', finishReason: 'stop', error: null, endedAtMs: 300 })
    expect(latest).not.toHaveProperty('response')
    expect((await turns.list({ limit: 1, status: 'failed' }))[0]?.error).toMatchObject({ code: expect.any(String) })
  },

  'turns are listed by the sender of the message that they answer': async ({ store }) => {
    await answerOne(store, 'm1', [], { endedAtMs: 100 })
    await answerOne(store, 'm2', [], { endedAtMs: 200 })
    await store.turns.finish(turnEnd('without a message', { endedAtMs: 300 }))
    const { sender } = inbound('m1')
    const ids = async (filter: object) => (await store.turns.list({ limit: 9, ...filter })).map(({ id }) => id)
    expect(await ids({ sender })).toEqual(['turn of m2', 'turn of m1'])
    expect(await ids({ sender, sinceMs: 200 })).toEqual(['turn of m2'])
    expect(await ids({ sender, before: { endedAtMs: 200, id: 'turn of m2' } })).toEqual(['turn of m1'])
    expect(await ids({ sender: 'another sender' })).toEqual([])
    expect((await store.turns.list({ limit: 9 })).map((turn) => turn.sender)).toEqual([null, sender, sender])
  },

  'an ended turn keeps its steps': async ({ store: { turns }, restart }) => {
    const steps = [
      { kind: 'model', name: 'openai:m', atMs: 1, tookMs: 2, outcome: 'error', error: 'answered 503' },
      {
        kind: 'model',
        name: 'openai:m',
        atMs: 3,
        tookMs: 4,
        outcome: 'ok',
        finish: 'tool-calls',
        inputTokens: 5,
        outputTokens: 6,
        costUsd: 7,
      },
      { kind: 'tool', name: 'shell', atMs: 8, tookMs: 9, outcome: 'ok' },
    ] as const
    await turns.finish(turnEnd('direct', { steps }))
    await turns.enqueue(queuedTurn('stored'))
    expect((await turns.get('stored'))?.steps).toEqual([])
    await turns.finish(failedTurn('stored', { steps }))
    await turns.finish(turnEnd('without'))
    const { turns: after } = await restart()
    const kept = await Promise.all(['direct', 'stored', 'without'].map(async (id) => (await after.get(id))?.steps))
    expect(kept).toEqual([steps, steps, []])
  },

  'the usage of attempts that did not end their turn counts once it has ended': async ({ store }) => {
    const { turns, inbox } = await own(store)
    const used = { inputTokens: 10, outputTokens: 1, costUsd: 2, model: 'm' }
    await turns.enqueue(queuedTurn('t1'))
    for (let attempt = 0; attempt < 2; attempt++) await turns.addUsage('t1', used)
    await turns.addUsage('t1', { inputTokens: Number.NaN, outputTokens: 1, costUsd: Number.POSITIVE_INFINITY, model: null })
    expect(await turns.get('t1')).toMatchObject({ inputTokens: 20, outputTokens: 3, costUsd: 4, model: 'm', status: 'queued' })
    expect(await turns.spentUsd(0)).toBe(0)
    await turns.finish(failedTurn('t1', { inputTokens: 3, outputTokens: 4, costUsd: 0.5, endedAtMs: 2_000 }))
    expect(await turns.get('t1')).toMatchObject({ inputTokens: 23, outputTokens: 7, costUsd: 4.5, model: 'm' })
    const number = await keepOne(store, 'stopped')
    await inbox.start(number, 'answer', STARTS_MAX)
    await turns.addUsage('answer', used)
    await inbox.done(number, 3_000)
    const dead = await keepOne(store, 'dead')
    await inbox.start(dead, 'unanswered', STARTS_MAX)
    await turns.addUsage('unanswered', used)
    await inbox.markDead(dead, { error: 'no answer', atMs: 4_000 })
    for (const id of ['t1', 'answer', 'unknown']) await turns.addUsage(id, used)
    expect(await turns.get('answer')).toMatchObject({ status: 'aborted', ...used })
    expect(await turns.spentUsd(0)).toBe(8.5)
    expect(await turns.costs({ sinceMs: 0, untilMs: HOUR_MS, periodMs: HOUR_MS, offsetMs: 0 })).toEqual([
      { atMs: 0, agent: 'main', model: 'm', costUsd: 8.5, turns: 3, inputTokens: 43, outputTokens: 9 },
    ])
  },

  'the amount spent counts every ended turn, failed ones too': async ({ store: { turns } }) => {
    expect(await turns.spentUsd(0)).toBe(0)
    await turns.finish(turnEnd('t1', { endedAtMs: 100, costUsd: 1 }))
    await turns.finish(failedTurn('t2', { endedAtMs: 200, costUsd: 2 }))
    await turns.finish(turnEnd('t3', { endedAtMs: 300, costUsd: 4 }))
    await turns.enqueue(queuedTurn('t4'))
    expect(await Promise.all([0, 100, 101, 300, 301].map((since) => turns.spentUsd(since)))).toEqual([7, 7, 6, 4, 0])
  },
}

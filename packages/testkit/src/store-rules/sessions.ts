/** Rules for sessions. */
import { expect } from 'vitest'
import { assistant, failedTurn, ODD_TEXTS, turnEnd, user } from './samples.ts'
import type { StoreRules } from './store-bench.ts'

export const sessionRules: StoreRules = {
  'an unknown session has no row and no history': async ({ store: { sessions } }) => {
    expect(await sessions.get('nobody')).toBeUndefined()
    expect(await sessions.history('nobody', 10)).toEqual([])
    expect(await sessions.rename('nobody', 'x')).toBe(false)
    expect(await sessions.messagesByTurn('nobody', { after: 0, limit: 10 })).toEqual([])
    expect(await sessions.erase('nobody', { atMs: 1, by: 'test' })).toBeUndefined()
  },

  'the first turn creates the session, later turns append to it': async ({ store: { sessions, turns } }) => {
    await turns.finish(turnEnd('t1', { createdAtMs: 10, endedAtMs: 20 }))
    expect(await sessions.get('room')).toEqual({ id: 'room', name: null, createdAtMs: 10, lastActiveAtMs: 20, messageCount: 2 })
    await turns.finish(turnEnd('t2', { createdAtMs: 30, endedAtMs: 40, messages: [user('and?'), assistant('so'), assistant('it is')] }))
    expect(await sessions.get('room')).toEqual({ id: 'room', name: null, createdAtMs: 10, lastActiveAtMs: 40, messageCount: 5 })
  },

  'returns the newest messages of a history, oldest first': async ({ store: { sessions, turns } }) => {
    for (const id of ['a', 'b', 'c'])
      await turns.finish(turnEnd(id, { messages: [user(`${id}1`), assistant(`${id}2`), assistant(`${id}3`)] }))
    const all = ['a', 'b', 'c'].flatMap((id) => [user(`${id}1`), assistant(`${id}2`), assistant(`${id}3`)])
    for (let limit = 0; limit <= 10; limit++) expect(await sessions.history('room', limit)).toEqual(limit === 0 ? [] : all.slice(-limit))
  },

  'sessions never share messages': async ({ store: { sessions, turns } }) => {
    await Promise.all(
      ['a', 'b', 'a', 'b'].map((id, at) => turns.finish(turnEnd(`t${at}`, { sessionId: id, messages: [user(`${id}${at}`)] }))),
    )
    expect(await sessions.history('a', 10)).toEqual([user('a0'), user('a2')])
    expect(await sessions.history('b', 10)).toEqual([user('b1'), user('b3')])
  },

  'a turn that appends nothing leaves its session unchanged': async ({ store: { sessions, turns } }) => {
    await turns.finish(failedTurn('t1'))
    expect(await sessions.get('room')).toBeUndefined()
    await turns.finish(turnEnd('t2', { endedAtMs: 20 }))
    await turns.finish(failedTurn('t3', { endedAtMs: 30 }))
    expect(await sessions.get('room')).toMatchObject({ lastActiveAtMs: 20, messageCount: 2 })
  },

  'messages with odd texts come back unchanged': async ({ store: { sessions, turns } }) => {
    const messages = ODD_TEXTS.map(user)
    await turns.finish(turnEnd('t1', { messages }))
    expect(await sessions.history('room', messages.length)).toEqual(messages)
  },

  'lists sessions by activity, newest first, in pages': async ({ store: { sessions, turns } }) => {
    for (const [at, id] of ['a', 'b', 'c', 'd'].entries()) await turns.finish(turnEnd(`t${at}`, { sessionId: id, endedAtMs: at }))
    await turns.finish(turnEnd('late', { sessionId: 'a', endedAtMs: 9 }))
    const ids = async (options: Parameters<typeof sessions.list>[0]) => (await sessions.list(options)).map(({ id }) => id)
    expect(await ids({ limit: 10 })).toEqual(['a', 'd', 'c', 'b'])
    expect(await ids({ limit: 2 })).toEqual(['a', 'd'])
    expect(await ids({ limit: 2, before: { lastActiveAtMs: 3, id: 'd' } })).toEqual(['c', 'b'])
  },

  'pages through sessions with the same time of activity': async ({ store: { sessions, turns } }) => {
    for (const id of ['a', 'b', 'c', 'd', 'e']) await turns.finish(turnEnd(`t-${id}`, { sessionId: id, endedAtMs: 7 }))
    const seen: string[] = []
    for (let page = await sessions.list({ limit: 2 }); page.length > 0; ) {
      seen.push(...page.map(({ id }) => id))
      const before = page.at(-1)
      page = before ? await sessions.list({ limit: 2, before }) : []
    }
    expect(seen).toEqual(['e', 'd', 'c', 'b', 'a'])
  },

  'lists the sessions of all agents by the key without the agent': async ({ store: { sessions, turns } }) => {
    const ids = ['agent:b/x/1', 'agent:a/x/1', 'x/1', 'agent:a/y/1', 'agents:x/1', 'agent:A/x/1', 'agent:x/']
    for (const [at, sessionId] of ids.entries()) await turns.finish(turnEnd(`t${at}`, { sessionId, endedAtMs: 9_000 - at }))
    const listed = async (options: { prefix?: string; suffix?: string }) =>
      (await sessions.list({ limit: 10, ...options })).map(({ id }) => id)
    expect(await listed({ prefix: 'x/' })).toEqual(['agent:b/x/1', 'agent:a/x/1', 'x/1'])
    expect(await listed({ prefix: 'y/', suffix: '/1' })).toEqual(['agent:a/y/1'])
    expect(await listed({})).toEqual(ids)
  },

  'matches a suffix literally, with and without a prefix': async ({ store: { sessions, turns } }) => {
    for (const [at, id] of ['x/1/%2B1', 'x/2/%2B1', 'x/1/22B1', 'y/1/%2B1'].entries())
      await turns.finish(turnEnd(`t${at}`, { sessionId: id, endedAtMs: at }))
    const ids = async (options: { prefix?: string; suffix: string }) => (await sessions.list({ limit: 10, ...options })).map(({ id }) => id)
    expect(await ids({ suffix: '/%2B1' })).toEqual(['y/1/%2B1', 'x/2/%2B1', 'x/1/%2B1'])
    expect(await ids({ prefix: 'x/', suffix: '/%2B1' })).toEqual(['x/2/%2B1', 'x/1/%2B1'])
    expect(await ids({ suffix: '%' })).toEqual([])
  },

  'reads messages turn by turn, oldest first, in pages': async ({ store: { sessions, turns } }) => {
    for (const at of [1, 2, 3]) await turns.finish(turnEnd(`t${at}`, { endedAtMs: at, messages: [user(`q${at}`), assistant(`a${at}`)] }))
    const first = await sessions.messagesByTurn('room', { after: 0, limit: 2 })
    expect(first).toEqual([
      { upTo: 2, atMs: 1, messages: [user('q1'), assistant('a1')] },
      { upTo: 4, atMs: 2, messages: [user('q2'), assistant('a2')] },
    ])
    expect((await sessions.messagesByTurn('room', { after: 4, limit: 2 })).map(({ upTo }) => upTo)).toEqual([6])
    for (const [upTo, listed] of [
      [6, [4, 6]],
      [5, [4]],
      [2, []],
    ] as const)
      expect((await sessions.messagesByTurn('room', { after: 2, limit: 9, upTo })).map((turn) => turn.upTo)).toEqual(listed)
  },

  'matches a prefix literally and pages through the matches': async ({ store: { sessions, turns } }) => {
    const ids = ['x:1', 'x:2', 'x;', 'X:3', 'x_:4', 'x%:5', '\u{10ffff}a', '\ud7ffb', '\ue000c', '']
    for (const [at, id] of ids.entries()) await turns.finish(turnEnd(`t${at}`, { sessionId: id, endedAtMs: at }))
    const list = async (prefix: string, before?: number) =>
      (await sessions.list({ limit: 10, prefix, ...(before === undefined ? {} : { before: { lastActiveAtMs: before, id: '' } }) })).map(
        ({ id }) => id,
      )
    expect(await list('x:')).toEqual(['x:2', 'x:1'])
    expect(await list('x:', 1)).toEqual(['x:1'])
    expect(await list('x_')).toEqual(['x_:4'])
    expect(await list('x%')).toEqual(['x%:5'])
    expect(await list('\u{10ffff}')).toEqual(['\u{10ffff}a'])
    expect(await list('\ud7ff')).toEqual(['\ud7ffb'])
    expect(await list('nothing')).toEqual([])
    expect(await list('')).toHaveLength(ids.length)
  },

  'each way to read a session returns the whole of it': async ({ store: { sessions, turns }, otherProcess }) => {
    const id = 'agent:a/x/1'
    await turns.finish(turnEnd('t1', { sessionId: id, createdAtMs: 10, endedAtMs: 20 }))
    await sessions.rename(id, 'Kitchen')
    const whole = { id, name: 'Kitchen', createdAtMs: 10, lastActiveAtMs: 20, messageCount: 2 }
    const filters = [{}, { prefix: 'x/' }, { suffix: '/1' }, { prefix: 'x/', suffix: '/1' }, { prefix: 'x' }]
    for (const { sessions: read } of [{ sessions }, await otherProcess()]) {
      expect(await read.get(id)).toEqual(whole)
      for (const filter of filters) expect(await read.list({ limit: 10, ...filter })).toEqual([whole])
    }
  },

  'sets, changes and removes a name': async ({ store: { sessions, turns } }) => {
    await turns.finish(turnEnd('t1'))
    for (const name of ['Kitchen', 'Küche', null]) {
      expect(await sessions.rename('room', name)).toBe(true)
      expect((await sessions.get('room'))?.name).toBe(name)
    }
  },
}

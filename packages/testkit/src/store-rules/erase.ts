/** Rules for erasing a conversation. */
import { type Store, sessionKeys } from '@sluice/sdk'
import { expect } from 'vitest'
import { asked } from './approval-samples.ts'
import { answerOne, arrival, bodyArrival, bodyOf, inbound, keepOne, reply, STARTS_MAX } from './delivery-samples.ts'
import { queuedTurn, turnEnd, user } from './samples.ts'
import { own, type StoreRules } from './store-bench.ts'

const ABOUT = { atMs: 5_000, by: 'cli:ada' }

/** The session of the messages that `keepOne` stores. */
async function sessionOf(store: Store, number: number): Promise<string> {
  const row = await store.inbox.get(number)
  return row?.session ?? expect.fail('no such message')
}

export const eraseRules: StoreRules = {
  'erases the keys of the conversation, whoever owns them': async ({ store }) => {
    const kept = ['session:', `${sessionKeys('room 2')}1`, 'other', `x${sessionKeys('room')}`]
    const keys = store.keyValue('x-test')
    for (const key of [...kept, `${sessionKeys('room')}1`, `${sessionKeys('room')}2`]) await keys.set(key, 1)
    await store.keyValue('x-other').set(`${sessionKeys('room')}1`, 1)
    await store.turns.finish(turnEnd('t1'))
    await store.sessions.erase('room', ABOUT)
    expect((await keys.list('', 10)).map(({ key }) => key)).toEqual(kept.toSorted())
    expect(await store.keyValue('x-other').list('', 10)).toEqual([])
  },

  'erases a conversation of which only keys are kept': async ({ store }) => {
    const keys = store.keyValue('overheard')
    await keys.set(`${sessionKeys('room')}lines`, [])
    expect(await store.sessions.erase('room', ABOUT)).toMatchObject({ historyTurns: 0, turns: 0, messages: 0 })
    expect(await keys.list('', 9)).toEqual([])
    expect(await store.sessions.erase('room', ABOUT)).toBeUndefined()
  },

  'erases the messages and turn texts of one conversation only': async ({ store, restart }) => {
    await store.turns.finish(turnEnd('t1'))
    await store.turns.finish(turnEnd('failed', { status: 'failed', error: { code: 'upstream', message: 'private' }, messages: [] }))
    await store.turns.finish(turnEnd('t2', { sessionId: 'other' }))
    expect(await store.sessions.history('room', 10)).toHaveLength(2)
    expect(await store.sessions.erase('room', ABOUT)).toMatchObject({ historyTurns: 1, turns: 2, messages: 0, held: 0 })
    expect(await store.sessions.history('room', 10)).toEqual([])
    const again = await restart()
    expect(await again.sessions.get('room')).toBeUndefined()
    expect(await again.sessions.history('room', 10)).toEqual([])
    for (const id of ['t1', 'failed'])
      expect(await again.turns.get(id)).toMatchObject({
        sessionId: null,
        owner: null,
        input: '',
        response: null,
        error: null,
        costUsd: 0.25,
      })
    expect(await again.sessions.history('other', 10)).toHaveLength(2)
    expect(await again.turns.get('t2')).toMatchObject({ sessionId: 'other', input: 'input of t2' })
    expect(await again.sessions.erase('room', ABOUT)).toBeUndefined()
    await again.turns.finish(turnEnd('t3', { messages: [user('anew')] }))
    expect(await again.sessions.history('room', 10)).toEqual([user('anew')])
    expect(await again.check()).toEqual([])
  },

  'nothing of an erased conversation remains in the files': async ({ store }) => {
    await store.turns.finish(turnEnd('t1'))
    expect(await store.sessions.erase('room', ABOUT)).toMatchObject({ historyTurns: 1, purged: true })
  },

  'erases messages, replies and approvals but still detects duplicates': async ({ store }) => {
    const { inbox, outbox, approvals } = await own(store)
    const number = await answerOne(store, 'm1', [reply('private')])
    const session = await sessionOf(store, number)
    const turn = (await inbox.get(number))?.turnId ?? ''
    await approvals.open(asked(turn), [reply('may I say private?')])
    const waiting = await keepOne(store, 'm2')
    expect(await store.sessions.erase(session, ABOUT)).toMatchObject({ messages: 2, replies: 2, approvals: 1, held: 0 })
    for (const one of [number, waiting])
      expect(await inbox.get(one)).toMatchObject({ state: 'done', sender: '', session: '', messageId: '', message: null, raw: null })
    for (const row of await outbox.list({ limit: 10 })) {
      expect(row).toMatchObject({ text: null, to: { to: '' }, state: 'dead' })
      expect(await outbox.replay(row.number)).toBe(false)
    }
    expect(await approvals.list({ limit: 10 })).toEqual([])
    expect(await inbox.waiting({ after: 0, limit: 10 })).toEqual([])
    expect(await inbox.oldestWaitingMs()).toBeNull()
    expect(await inbox.keep(arrival(['m1', 'm2']))).toEqual([null, null])
    expect(await store.check()).toEqual([])
  },

  'does not erase a conversation with an unfinished turn': async ({ store }) => {
    const { inbox, sessions, turns } = store
    await turns.enqueue(queuedTurn('waiting'))
    await expect(sessions.erase('room', ABOUT)).rejects.toMatchObject({ code: 'conflict' })
    const number = await keepOne(store, 'm1')
    await inbox.start(number, 't1', STARTS_MAX)
    await expect(sessions.erase(await sessionOf(store, number), ABOUT)).rejects.toMatchObject({ code: 'conflict' })
    expect(await inbox.get(number)).toMatchObject({ state: 'running', message: inbound('m1') })
  },

  'keeps a shared request until its other messages are done': async ({ store }) => {
    const { inbox } = store
    const both = bodyArrival(['m1', 'm2'])
    const [mine, theirs] = both.messages
    if (!mine || !theirs) expect.fail('two messages')
    const [first = 0, second = 0] = (await inbox.keep({ ...both, messages: [mine, { ...theirs, session: 'theirs' }] })) as number[]
    expect(await store.sessions.erase(mine.session, ABOUT)).toMatchObject({ messages: 1, held: 1 })
    expect(await inbox.get(second)).toMatchObject({ state: 'pending', messageId: 'm2', raw: bodyOf('m1 m2') })
    expect(await inbox.get(first)).toMatchObject({ messageId: '', message: null })
    expect(await inbox.replay(first)).toBe(false)
    await inbox.done(second, 1)
    expect(await store.sessions.erase('theirs', ABOUT)).toMatchObject({ messages: 1, held: 0 })
    expect(await inbox.get(second)).toMatchObject({ message: null, raw: null })
  },

  "erases the owner's memories on request": async ({ store }) => {
    const { memory, sessions, turns } = store
    for (const owner of ['device:a', 'device:b'])
      await memory.put({ owner, key: 'colour', content: 'teal', category: 'core', untrusted: false, atMs: 1 })
    await turns.finish(turnEnd('t1'))
    expect(await sessions.erase('room', { ...ABOUT, memoriesOf: 'device:a' })).toMatchObject({ historyTurns: 1, memories: 1 })
    expect(await memory.search('device:a', 'teal', 10)).toEqual([])
    expect(await memory.search('device:b', 'teal', 10)).toHaveLength(1)
    expect(await sessions.erase('room', { ...ABOUT, memoriesOf: 'device:b' })).toMatchObject({ historyTurns: 0, memories: 1 })
  },

  'the audit log records who erased, but not the content': async ({ store }) => {
    await store.turns.finish(turnEnd('t1', { sessionId: 'channel:roomchat/%2B15550100' }))
    await store.sessions.erase('channel:roomchat/%2B15550100', ABOUT)
    const [record, ...others] = await store.sops.audit({ limit: 10 })
    expect(others).toEqual([])
    expect(record).toMatchObject({ kind: 'conversation_erased', by: 'cli:ada', atMs: 5_000, detail: { said: 1 } })
    expect(JSON.stringify(record)).not.toContain('15550100')
    expect(await store.sops.verify()).toMatchObject({ records: 1, broken: null })
  },
}

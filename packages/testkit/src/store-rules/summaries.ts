/** Rules for the summaries of sessions. */
import type { SessionSummary, Store } from '@sluice/sdk'
import { expect } from 'vitest'
import { assistant, ODD_TEXTS, turnEnd, user } from './samples.ts'
import { own, type StoreRules } from './store-bench.ts'

const summary = (upTo: number, part: Partial<SessionSummary> = {}): SessionSummary => ({
  text: `the first ${upTo}`,
  upTo,
  upToMs: 4,
  model: 'small',
  atMs: 3_000,
  untrusted: false,
  ...part,
})

const said = ['a', 'b', 'c'].flatMap((id) => [user(`${id}1`), assistant(`${id}2`)])

/** Adds three turns with two messages each. */
async function addTurns({ turns }: Store): Promise<void> {
  for (let at = 0; at < said.length; at += 2) await turns.finish(turnEnd(`t${at}`, { endedAtMs: at, messages: said.slice(at, at + 2) }))
}

const NOTHING = { upTo: 0, summary: undefined, messages: [] }
const SIX = { upTo: 6, summary: undefined }

export const summaryRules: StoreRules = {
  'a conversation without a summary is its newest messages': async ({ store }) => {
    expect(await store.sessions.conversation('room', 10)).toEqual(NOTHING)
    expect(await store.sessions.summary('room')).toBeUndefined()
    await addTurns(store)
    for (let limit = 1; limit <= 8; limit++)
      expect(await store.sessions.conversation('room', limit)).toEqual({ ...SIX, messages: said.slice(-limit) })
  },

  'a summary replaces the messages that it covers, across a restart': async ({ store, restart }) => {
    await addTurns(store)
    expect(await store.sessions.summarize('room', SIX, summary(3, { untrusted: true }))).toBe(true)
    const check = async ({ sessions }: Store) => {
      expect(await sessions.summary('room')).toEqual(summary(3, { untrusted: true }))
      for (let limit = 1; limit <= 8; limit++) {
        const messages = said.slice(3).slice(-limit)
        expect(await sessions.conversation('room', limit)).toEqual({ upTo: 6, summary: summary(3, { untrusted: true }), messages })
      }
    }
    await check(store)
    await check(await restart())
  },

  'a summary of all messages leaves only later ones': async ({ store }) => {
    await addTurns(store)
    await store.sessions.summarize('room', SIX, summary(6))
    expect(await store.sessions.conversation('room', 10)).toEqual({ upTo: 6, summary: summary(6), messages: [] })
    await store.turns.finish(turnEnd('later', { messages: [user('d1')] }))
    expect(await store.sessions.conversation('room', 10)).toEqual({ upTo: 7, summary: summary(6), messages: [user('d1')] })
  },

  'the messages that a summary covers stay stored': async ({ store }) => {
    await addTurns(store)
    await store.sessions.summarize('room', SIX, summary(5))
    expect(await store.sessions.history('room', 10)).toEqual(said)
    expect(await store.sessions.messagesByTurn('room', { after: 0, limit: 10 })).toHaveLength(3)
    expect(await store.sessions.get('room')).toMatchObject({ messageCount: 6 })
  },

  'a summary replaces only the one that its writer has seen': async ({ store: { sessions, ...store } }) => {
    await addTurns({ ...store, sessions })
    expect(await sessions.summarize('room', SIX, summary(2))).toBe(true)
    expect(await sessions.summarize('room', SIX, summary(4))).toBe(false)
    expect(await sessions.summary('room')).toEqual(summary(2))
    expect(await sessions.summarize('room', { upTo: 6, summary: summary(2) }, summary(4))).toBe(true)
    expect(await sessions.summary('room')).toEqual(summary(4))
  },

  'a summary of a session with other messages is refused': async ({ store }) => {
    expect(await store.sessions.summarize('room', { upTo: 0, summary: undefined }, summary(0))).toBe(false)
    await addTurns(store)
    expect(await store.sessions.summarize('room', { upTo: 4, summary: undefined }, summary(2))).toBe(false)
    expect(await store.sessions.summary('room')).toBeUndefined()
  },

  'a session that was erased meanwhile gets no summary': async ({ store, otherProcess }) => {
    await addTurns(store)
    await store.sessions.conversation('room', 10)
    await (await otherProcess()).sessions.erase('room', { atMs: 5_000, by: 'test' })
    expect(await store.sessions.summarize('room', SIX, summary(2))).toBe(false)
    expect(await store.sessions.conversation('room', 10)).toEqual(NOTHING)
  },

  'erasing a session erases its summary': async ({ store, restart }) => {
    await addTurns(store)
    await store.turns.finish(turnEnd('other', { sessionId: 'other' }))
    await store.sessions.summarize('room', SIX, summary(2))
    await store.sessions.summarize('other', { upTo: 2, summary: undefined }, summary(1))
    await store.sessions.erase('room', { atMs: 5_000, by: 'test' })
    const check = async ({ sessions }: Store) => {
      expect(await sessions.summary('room')).toBeUndefined()
      expect(await sessions.conversation('room', 10)).toEqual(NOTHING)
      expect(await sessions.summary('other')).toEqual(summary(1))
    }
    await check(store)
    await check(await restart())
  },

  'a summary with an odd text comes back as well-formed text': async ({ store, restart }) => {
    await addTurns(store)
    const text = ODD_TEXTS.join(' ')
    await store.sessions.summarize('room', SIX, summary(2, { text }))
    expect((await (await restart()).sessions.summary('room'))?.text).toBe(text.toWellFormed())
  },

  'a summary of another process is seen at once': async ({ store, otherProcess }) => {
    await addTurns(store)
    expect((await store.sessions.conversation('room', 10)).messages).toHaveLength(6)
    await (await otherProcess()).sessions.summarize('room', SIX, summary(4))
    await new Promise((resolve) => setImmediate(resolve))
    expect(await store.sessions.conversation('room', 10)).toEqual({ upTo: 6, summary: summary(4), messages: said.slice(4) })
  },

  'a summary under a lost lease is refused': async ({ store, otherProcess }) => {
    await addTurns(store)
    const owned = await own(store)
    await own(await otherProcess())
    await expect(owned.sessions.summarize('room', SIX, summary(2))).rejects.toMatchObject({ code: 'unavailable' })
    expect(await store.sessions.summary('room')).toBeUndefined()
  },

  'a summary is pruned with the last message that it covers': async ({ store }) => {
    await addTurns(store)
    await store.turns.finish(turnEnd('later', { endedAtMs: 9_000, messages: [user('d1')] }))
    await store.sessions.summarize('room', { upTo: 7, summary: undefined }, summary(6, { upToMs: 4, atMs: 8_000 }))
    const kept = summary(6, { upToMs: 4, atMs: 8_000 })
    const retention = { endedBeforeMs: 0, idsBeforeMs: 0, keysBeforeMs: 0, bytesMax: Number.MAX_SAFE_INTEGER, nowMs: 10_000, limit: 100 }
    await store.prune({ ...retention, historyBeforeMs: 4 })
    expect(await store.sessions.conversation('room', 10)).toEqual({ upTo: 7, summary: kept, messages: [user('d1')] })
    await store.prune({ ...retention, historyBeforeMs: 5 })
    expect(await store.sessions.conversation('room', 10)).toEqual({ upTo: 7, summary: undefined, messages: [user('d1')] })
  },

  'a summary outlives the messages that the size limit deletes': async ({ store }) => {
    await addTurns(store)
    await store.sessions.summarize('room', SIX, summary(4))
    const retention = { endedBeforeMs: 0, idsBeforeMs: 0, keysBeforeMs: 0, historyBeforeMs: 0, bytesMax: 0, nowMs: 10_000, limit: 100 }
    await store.prune(retention)
    expect(await store.sessions.history('room', 10)).toEqual([])
    expect(await store.sessions.conversation('room', 10)).toEqual({ upTo: 6, summary: summary(4), messages: [] })
    await store.turns.finish(turnEnd('later', { messages: [user('d1')] }))
    expect(await store.sessions.conversation('room', 10)).toEqual({ upTo: 7, summary: summary(4), messages: [user('d1')] })
  },
}

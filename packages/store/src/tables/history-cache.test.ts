/** Compares cached histories with the file while two processes write to it. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ModelMessage, Store } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import fc from 'fast-check'
import { afterEach, expect, test } from 'vitest'
import { openStore } from '../index.ts'

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

function pair(): { ours: Store; theirs: Store } {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-history-'))
  cleanups.push(() => rmSync(dir, { recursive: true, force: true }))
  const open = () => {
    const store = openStore({ file: join(dir, 'test.db'), clock: testClock(), log: testHost().log })
    cleanups.push(() => store.close())
    return store
  }
  return { ours: open(), theirs: open() }
}

const says = (text: string): ModelMessage => ({ role: 'user', content: [{ type: 'text', text }] })
let turns = 0

const finish = (store: Store, sessionId: string, texts: readonly string[]) =>
  store.turns.finish({
    id: `turn-${turns++}`,
    agent: 'main',
    sessionId,
    source: 'test',
    status: 'done',
    input: '',
    response: '',
    model: 'test',
    error: null,
    inputTokens: 0,
    outputTokens: 0,
    costUsd: 0,
    attempts: 1,
    createdAtMs: turns,
    endedAtMs: turns,
    messages: texts.map(says),
  })

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('finish' as const),
      by: fc.constantFrom('ours' as const, 'theirs' as const),
      session: fc.nat(2),
      count: fc.nat(3),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('read' as const), session: fc.nat(2), limit: fc.integer({ min: 1, max: 12 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('summarize' as const),
      by: fc.constantFrom('ours' as const, 'theirs' as const),
      session: fc.nat(2),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('delete' as const),
      by: fc.constantFrom('ours' as const, 'theirs' as const),
      session: fc.nat(2),
    }),
  },
)

test('histories written by two processes match a plain model', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const stores = pair()
      const model = new Map<string, ModelMessage[]>()
      const summarized = new Map<string, number>()
      for (const [index, act] of steps.entries()) {
        const id = `session-${act.session}`
        const messages = model.get(id) ?? []
        if (act.do === 'read') {
          const upTo = summarized.get(id)
          expect(await stores.ours.sessions.history(id, act.limit)).toEqual(messages.slice(-act.limit))
          const conversation = await stores.ours.sessions.conversation(id, act.limit)
          expect(conversation.messages).toEqual(messages.slice(upTo).slice(-act.limit))
          expect(conversation.summary?.upTo).toBe(upTo)
        } else if (act.do === 'summarize') {
          // Covers half of the messages that are not covered yet.
          const seen = await stores[act.by].sessions.conversation(id, 1)
          const upTo = Math.ceil(((seen.summary?.upTo ?? 0) + seen.upTo) / 2)
          const summary = { text: 's', upTo, upToMs: 1, model: 'm', atMs: 1, untrusted: false }
          if (await stores[act.by].sessions.summarize(id, seen, summary)) summarized.set(id, upTo)
        } else if (act.do === 'delete') {
          await stores[act.by].sessions.erase(id, { atMs: 1, by: 'test' })
          model.delete(id)
          summarized.delete(id)
        } else {
          const texts = Array.from({ length: act.count }, (_, number) => `${index}.${number}`)
          await finish(stores[act.by], id, texts)
          if (texts.length > 0) model.set(id, [...(model.get(id) ?? []), ...texts.map(says)])
        }
      }
      for (const clean of cleanups.splice(0).reverse()) await clean()
    }),
    { numRuns: 40 },
  )
})

test('a long session is read completely when only its end is cached', async () => {
  const { ours } = pair()
  for (let turn = 0; turn < 200; turn++) await finish(ours, 'long', [`q${turn}`, `a${turn}`])
  expect(await ours.sessions.history('long', 10)).toHaveLength(10)
  await finish(ours, 'long', ['last'])
  const all = await ours.sessions.history('long', 1000)
  expect(all).toHaveLength(401)
  expect(all.at(-1)).toEqual(says('last'))
  expect((await ours.sessions.history('long', 3)).map((message) => message.content)).toEqual(
    all.slice(-3).map((message) => message.content),
  )
})

test('two turns of one session in one commit are both in the history', async () => {
  const { ours } = pair()
  await ours.sessions.history('busy', 10)
  await Promise.all([finish(ours, 'busy', ['one']), finish(ours, 'busy', ['two'])])
  expect(await ours.sessions.history('busy', 10)).toHaveLength(2)
})

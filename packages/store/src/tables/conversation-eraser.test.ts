import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { copyFirstRelease } from '@sluice/qa/first-release'
import { testHost } from '@sluice/testkit/host'
import { asked } from '@sluice/testkit/store-rules/approval-samples'
import { arrivalOf, inbound, reply, STARTS_MAX } from '@sluice/testkit/store-rules/delivery-samples'
import { assistant, queuedTurn, turnEnd, user } from '@sluice/testkit/store-rules/samples'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openStore } from '../open-store.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'erase-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const { clock, log } = testHost()
const MARK = 'Quetzalcoatlus'
/** A text so long that SQLite stores it in pages of its own. */
const LONG = `${MARK} `.repeat(2_000)

/** Returns the number of occurrences of the mark in the files of a store. */
function marksIn(file: string): number {
  const files = [file, `${file}-wal`].filter((path) => existsSync(path))
  return files.reduce((sum, path) => sum + readFileSync(path, 'latin1').split(MARK).length - 1, 0)
}

test('an erased conversation leaves nothing in free pages or in the log', async () => {
  const file = join(folder, 'sluice.db')
  const store = openStore({ file, clock, log })
  const { inbox, turns, approvals, memory, sessions, outbox } = store
  const messages = [user(LONG), assistant(`${MARK}!`)]
  for (let at = 0; at < 30; at++) {
    await turns.finish(turnEnd(`others-${at}`, { sessionId: 'other', messages: [user(`hello ${at} `.repeat(200))] }))
    await turns.enqueue(queuedTurn(`t${at}`, { sessionId: 'mine', input: LONG }))
    await turns.checkpoint(`t${at}`, messages)
    await turns.finish(turnEnd(`t${at}`, { sessionId: 'mine', input: LONG, messages }))
    const message = inbound(`m${at}`, { text: LONG })
    const raw = at % 3 === 0 ? null : Buffer.from(LONG)
    const kept = await inbox.keep(arrivalOf(message, { raw, messages: [{ message, session: 'mine' }] }))
    const number = kept[0] as number
    await inbox.start(number, `turn-${at}`, STARTS_MAX, message)
    await approvals.open(asked(`turn-${at}`, { message: MARK }), [reply(`may I say ${MARK}?`)])
    await turns.finish(turnEnd(`turn-${at}`, { sessionId: 'mine', messages, delivery: { inbox: number, replies: [reply(LONG)] } }))
    await memory.put({ owner: 'me', key: `k${at}`, content: LONG, category: 'core', untrusted: false, atMs: at })
    if (at % 2 === 0) await memory.delete('me', `k${at}`)
  }
  for (const { number } of await outbox.list({ limit: 100 })) await outbox.sent(number, { providerId: MARK, atMs: 1 })
  expect(marksIn(file)).toBeGreaterThan(10_000)
  const erased = await sessions.erase('mine', { atMs: 1, by: 'cli:ada', memoriesOf: 'me' })
  expect(erased).toMatchObject({ historyTurns: 60, turns: 60, messages: 30, replies: 60, approvals: 30, memories: 15, purged: true })
  expect(marksIn(file)).toBe(0)
  expect(await sessions.history('other', 100)).toHaveLength(30)
  expect(await store.check()).toEqual([])
  await store.close()
  expect(marksIn(file)).toBe(0)
})

test('an upgrade purges deleted rows, and an erasure names the remaining copies', async () => {
  const release = copyFirstRelease()
  try {
    const file = join(release.dataDir, 'sluice.db')
    const store = openStore({ file, clock, log })
    const id = 'channel:chatapp/200000000000002/%2B15550003333/%2B15550003333'
    const hasText = (path: string) => existsSync(path) && readFileSync(path, 'latin1').includes('refuse-me')
    expect([file, `${file}-wal`].some(hasText)).toBe(true)
    const erased = await store.sessions.erase(id, { atMs: 1, by: 'cli:ada' })
    expect(erased).toMatchObject({ historyTurns: 3, messages: 3, replies: 3, purged: true })
    expect([file, `${file}-wal`].some(hasText)).toBe(false)
    expect(erased?.copies.filter(hasText)).toHaveLength(1)
    await store.close()
  } finally {
    release.dispose()
  }
})

import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { asked } from '@sluice/testkit/store-rules/approval-samples'
import { keepOne, replyParts, STARTS_MAX } from '@sluice/testkit/store-rules/delivery-samples'
import { queuedTurn, turnEnd } from '@sluice/testkit/store-rules/samples'
import { sopRun, startOf } from '@sluice/testkit/store-rules/sop-samples'
import { own } from '@sluice/testkit/store-rules/store-bench'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openStore } from '../open-store.ts'
import { markRestored } from './mark-restored.ts'
import { restoredAtMs } from './restored-at.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'mark-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

test('work that is unfinished in a backup is not repeated, and can be replayed', { timeout: 60_000 }, async () => {
  const [file, clock, { log }] = [join(folder, 'sluice.db'), testClock(1_000_000), testHost()]
  const before = openStore({ file, clock, log })
  const [waiting, running, done] = [await keepOne(before, 'waiting'), await keepOne(before, 'running'), await keepOne(before, 'done')]
  await before.inbox.start(running, 'turn of running', STARTS_MAX)
  await before.inbox.start(done, 'turn of done', STARTS_MAX)
  const replies = await before.turns.finish(
    turnEnd('turn of done', { delivery: { inbox: done, replies: replyParts(['one', 'two', 'three']) } }),
  )
  await before.outbox.start(replies[0] ?? 0)
  await before.outbox.sent(replies[0] ?? 0, { providerId: 'p', atMs: clock.nowMs() })
  await before.outbox.start(replies[1] ?? 0)
  await before.turns.enqueue(queuedTurn('kept turn'))
  await before.sops.start([startOf(sopRun('run 1'))], { atMs: 1_000 })
  await before.approvals.open(asked('run 1'), [])
  await before.keyValue('sop').set('cron', 5)
  await before.close()

  await clock.advance(60_000)
  const marked = markRestored({ file, backupAtMs: 900_000, clock, log })
  expect(marked).toEqual({ replies: 2, messages: 2, turns: 2, approvals: 1, runs: 1 })
  expect(readdirSync(folder)).toEqual(['sluice.db'])

  const store = openStore({ file, clock, log })
  expect(await store.check()).toEqual([])
  const owned = await own(store)
  const all = { after: 0, limit: 100 }
  expect(await owned.inbox.waiting(all)).toEqual([])
  expect(await owned.outbox.waiting(all)).toEqual([])
  expect(await owned.turns.unfinished(100)).toEqual([])
  expect(await owned.sops.unfinished({ after: null, limit: 100 })).toEqual([])
  expect(await owned.approvals.unfinished({ after: null, limit: 100 })).toEqual([])
  expect((await store.outbox.list({ limit: 10 })).map(({ state }) => state)).toEqual(['ambiguous', 'ambiguous', 'sent'])
  expect((await store.inbox.list({ limit: 10 })).map(({ state }) => state)).toEqual(['done', 'dead', 'dead'])
  expect((await store.inbox.get(waiting))?.error).toContain('A backup of 1970-01-01T00:15:00.000Z was restored')
  expect(await store.turns.get('kept turn')).toMatchObject({ status: 'failed', error: { code: 'unavailable' } })
  expect(await store.sops.get('run 1')).toMatchObject({ status: 'cancelled', endedAtMs: clock.nowMs() })
  expect(await store.sops.verify()).toMatchObject({ broken: null })
  expect(await store.keyValue('sop').get('cron')).toBe(clock.nowMs())
  expect(await restoredAtMs(store)).toBe(clock.nowMs())
  expect(await store.inbox.replay(waiting)).toBe(true)
  expect(await store.outbox.replay(replies[1] ?? 0)).toBe(true)
  expect(await owned.inbox.waiting(all)).toHaveLength(1)
  await store.close()
})

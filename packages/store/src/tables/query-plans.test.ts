import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SQLInputValue } from 'node:sqlite'
import { ALL_SHARDS, type ShardRange } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { asked, decision } from '@sluice/testkit/store-rules/approval-samples'
import { arrival, reply, replyParts, STARTS_MAX } from '@sluice/testkit/store-rules/delivery-samples'
import { turnEnd } from '@sluice/testkit/store-rules/samples'
import { audited, ended, sopRun, startOf } from '@sluice/testkit/store-rules/sop-samples'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createApprovals } from '../cold/approvals.ts'
import { createMemory } from '../cold/memory.ts'
import { createSessions } from '../cold/sessions.ts'
import { createSops } from '../cold/sops.ts'
import { Database } from '../connection/database.ts'
import { GroupCommit } from '../connection/group-commit.ts'
import { createColdDatabase } from '../connection/run-steps.ts'
import { migrate } from '../schema/migrate.ts'
import { DIALECT } from './dialect.ts'
import { HistoryCache } from './history-cache.ts'
import { createIdempotency } from './idempotency.ts'
import { createInbox } from './inbox.ts'
import { createOutbox } from './outbox.ts'
import { prunable, prune } from './prune.ts'
import { RecentIds } from './recent-ids.ts'
import { recoverApprovals, recoverInbox, recoverOutbox, recoverSops, recoverTurns } from './recovery.ts'
import { sessionReads } from './sessions.ts'
import { usageOf } from './space.ts'
import { createTurns } from './turns.ts'

/** Records the texts of all statements. */
class RecordingDatabase extends Database {
  readonly texts = new Set<string>()

  override run(sql: string, ...values: SQLInputValue[]): number {
    this.texts.add(sql)
    return super.run(sql, ...values)
  }

  override insert(sql: string, ...values: SQLInputValue[]): number | undefined {
    this.texts.add(sql)
    return super.insert(sql, ...values)
  }

  override get<Row>(sql: string, ...values: SQLInputValue[]): Row | undefined {
    this.texts.add(sql)
    return super.get<Row>(sql, ...values)
  }

  override all<Row>(sql: string, ...values: SQLInputValue[]): Row[] {
    this.texts.add(sql)
    return super.all<Row>(sql, ...values)
  }
}

/** Leases that cover all shards, some and none. */
const RANGES: readonly (ShardRange | null)[] = [ALL_SHARDS, { from: 0, to: 127 }, null]

const RETENTION = { endedBeforeMs: 0, idsBeforeMs: 0, keysBeforeMs: 0, historyBeforeMs: 0, bytesMax: 0, nowMs: 0, limit: 10 }

let folder: string
let file: string
let db: RecordingDatabase
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'query-plans-'))
  file = join(folder, 'sluice.db')
  db = new RecordingDatabase(file)
  migrate(db, { file, log: testHost().log, nowMs: 0 })
  db.texts.clear()
})
afterEach(() => {
  db.close()
  rmSync(folder, { recursive: true })
})

/** Calls every method of inbox, outbox, turns and sessions. */
async function useAll(): Promise<void> {
  const { clock, log } = testHost()
  const writer = new GroupCommit(db, { clock, log })
  const inbox = createInbox(db, writer, clock, new RecentIds())
  const outbox = createOutbox(db, writer, clock)
  const turns = createTurns(db, writer, createIdempotency(db, clock).keys, new HistoryCache())
  const before = { endedAtMs: 1, id: 'x' }
  for (const filter of [
    {},
    { status: 'done' },
    { status: 'failed', agent: 'a' },
    { agent: 'a', before },
    { owner: 'o', status: 'done' },
  ] as const)
    await turns.list({ limit: 10, ...filter })
  await turns.list({ limit: 10, sessionId: 's', owner: 'o', before })
  await turns.costs({ sinceMs: 0, untilMs: 1, periodMs: 1, offsetMs: 0 })
  await inbox.keep(arrival(['a', 'b', 'c'], { nonce: { value: 'n', untilMs: 2_000 } }))
  await inbox.known('roomchat', [{ account: 'bot', id: 'new' }])
  await inbox.find('roomchat', { account: 'bot', id: 'a' })
  await inbox.change(2, { number: 1, message: null, atMs: 1 })
  await inbox.replay(1)
  for (const number of [1, 2, 3]) await inbox.start(number, `t${number}`, STARTS_MAX)
  await inbox.start(1, 't1', 1)
  const [part = 0] = await turns.finish(turnEnd('t1', { delivery: { inbox: 1, replies: replyParts(['x', 'y']) } }))
  await inbox.retry(2, { error: 'e', atMs: 1 })
  await inbox.release(3)
  await inbox.markDead(3, { error: 'e', atMs: 1 })
  await outbox.add([reply('z')])
  await outbox.start(part)
  await outbox.retry(part, { error: 'e', atMs: 1 })
  await outbox.giveUp(part, { state: 'dead', error: 'e', atMs: 1 })
  await outbox.replay(part)
  await outbox.start(part)
  await outbox.sent(part, { providerId: 'p', atMs: 1 })
  await outbox.sendInstead(part)
  for (const store of [inbox, outbox]) {
    for (const state of ['pending', 'queued', 'done', 'sent']) await store.list({ limit: 10, state })
    await store.list({ limit: 10 })
    await store.list({ limit: 10, channel: 'roomchat' })
    await store.counts()
    await store.get(1)
  }
  for (const shards of RANGES) {
    const waitingReplies = recoverOutbox(db, writer, shards)
    await waitingReplies.recover({ repeatable: ['roomchat'], atMs: 1 })
    await waitingReplies.waiting({ after: 0, limit: 10 })
    await recoverInbox(db, shards).waiting({ after: 0, limit: 10 })
    await recoverTurns(db, shards).unfinished(10)
    await recoverTurns(db, shards).abortsRequested()
  }
  await turns.requestAbort('t2')
  await turns.openSessions()
  const sessions = createSessions(createColdDatabase(db, writer, DIALECT), sessionReads({ db, writer, cache: new HistoryCache(), file }))
  await sessions.messagesByTurn('room', { after: 0, limit: 10 })
  const seen = await sessions.conversation('room', 10)
  await sessions.summarize('room', seen, { text: 's', upTo: 1, upToMs: 1, model: 'm', atMs: 1, untrusted: false })
  await sessions.conversation('room', 10)
  await sessions.erase('elsewhere', { atMs: 1, by: 'test' })
  await prunable(db, writer, { ...RETENTION, endedBeforeMs: 9e12 })
  usageOf(db, file)
  await prune(db, writer, file, RETENTION)
  await inbox.replay(3)
}

/** Calls every method of approvals and procedures. */
async function useProcedures(): Promise<void> {
  const { clock, log } = testHost()
  const writer = new GroupCommit(db, { clock, log })
  const idempotency = createIdempotency(db, clock)
  const cold = createColdDatabase(db, writer, DIALECT)
  const approvals = createApprovals(cold)
  const sops = createSops(cold, idempotency.keys)
  const key = { runId: 'r1', stepId: 'step-1' }
  await approvals.open(asked('r1'), [reply('a')])
  await createOutbox(db, writer, testHost().clock).sent(1, { providerId: 'p', atMs: 1 })
  await approvals.byToken('t')
  for (const shards of RANGES) {
    await recoverApprovals(db, shards).unfinished({ after: key, limit: 10 })
    await recoverApprovals(db, shards).unfinished({ after: null, limit: 10, decided: true })
    await recoverSops(db, shards).unfinished({ after: null, limit: 10 })
  }
  await approvals.counts()
  for (const filter of [{}, { state: 'pending' }, { owner: 'd1' }, { state: 'pending', owner: 'd1' }] as const)
    await approvals.list({ limit: 10, before: key, ...filter })
  await approvals.decide(key, decision('approved'), 1)
  await approvals.acknowledge(key, 1, [])
  const about = { atMs: 1, key: 'k', idempotency: { scope: 's', key: 'k' }, inbox: 1 }
  await sops.start([startOf(sopRun('r1'), { cooldownMs: 1 })], about)
  await sops.advance(sopRun('r1'), ended(sopRun('r1')), [audited('run_completed')])
  await sops.get('r1')
  for (const sop of [undefined, 'deploy']) {
    for (const active of [undefined, true, false]) {
      await sops.runs({ limit: 10, before: 'r1', ...(sop && { sop }), ...(active !== undefined && { active }) })
    }
    for (const run of [undefined, 'r1']) await sops.audit({ limit: 10, ...(sop && { sop }), ...(run && { run }) })
  }
  for (const status of ['completed', 'running'] as const) {
    for (const sop of [undefined, 'deploy']) await sops.runs({ limit: 10, status, ...(sop && { sop }) })
  }
  await sops.activeCounts()
  await sops.verify()
  await sops.prune({ finishedMax: 1, keysBeforeMs: 0 })
  await prune(db, writer, file, RETENTION)
  await idempotency.port.claim({ scope: 's', key: 'k' }, { ttlMs: 1, keysMax: 1 })
}

/** Calls every list of sessions and memories that the API has. */
async function useLists(): Promise<void> {
  const { clock, log } = testHost()
  const writer = new GroupCommit(db, { clock, log })
  const sessions = createSessions(createColdDatabase(db, writer, DIALECT), sessionReads({ db, writer, cache: new HistoryCache(), file }))
  const before = { lastActiveAtMs: 1, id: 'x' }
  for (const filter of [{}, { prefix: 'channel:slack/' }, { prefix: 'channel:slack/', suffix: '/U1' }])
    await sessions.list({ limit: 10, before, ...filter })
  const memory = createMemory(createColdDatabase(db, writer, DIALECT))
  await memory.put({ owner: 'a', key: 'k', content: 'c', category: 'core', untrusted: false, atMs: 1 })
  await memory.list({ limit: 10 })
  await memory.list({ limit: 10, after: { owner: 'a', key: 'k' } })
  await memory.list({ limit: 10, owner: 'a' })
  await memory.search('a', '', 10)
  await memory.owners({ limit: 10 })
  await memory.owners({ limit: 10, after: 'a' })
  await memory.count('a')
}

const PROCEDURE_TABLES = /\b(?:approvals|approval_prompts|sop_[a-z]+)\b/
/** A page in the order of the numbers: all rows that it reads are on the page, except for the few active ones. */
const PAGE = /WHERE (?:ended_at IS NOT NULL AND )?number [<>] (?:\?|\$1) ORDER BY number(?: DESC)? LIMIT (?:\?|\$2)$/
/** This table has one row for each table with AUTOINCREMENT. */
const COUNTERS = 'SCAN sqlite_sequence'
const TABLES = /\b(?:inbox|outbox|nonces|turns|session_summaries)\b/
/** Matches a plan that scans a whole table, which it may name by its alias, or all of its rows from a number on. */
const WALK = /^SCAN (?!CONSTANT ROW|json_each|\(subquery|.*USING)|\(rowid[<>]\?\)$/
/** A subquery that runs for each row must not scan anything, not even the waiting rows. */
const FOR_EACH = /^CORRELATED/
/** This query finds the end of a slice, so it reads each row once. */
const MEASURE = 'SELECT max(number)'

test('no query of inbox or outbox scans its table', async () => {
  await useAll()
  const texts = [...db.texts].filter((text) => TABLES.test(text))
  expect(texts.length).toBeGreaterThan(40)
  for (const text of texts.filter((one) => !one.includes(MEASURE))) {
    const steps = db.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${text}`).map(({ detail }) => detail)
    const walks = steps.filter(
      (step, at) => (WALK.test(step) && !PAGE.test(text)) || (step.startsWith('SCAN') && FOR_EACH.test(steps[at - 1] ?? '')),
    )
    expect(walks, text).toEqual([])
  }
})

test('no query of approvals or procedures scans its table, except by page', async () => {
  await useProcedures()
  const texts = [...db.texts].filter((text) => PROCEDURE_TABLES.test(text))
  expect(texts.length).toBeGreaterThan(35)
  for (const text of texts) {
    const plan = db.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${text}`).map(({ detail }) => detail)
    const steps = plan.filter((step) => step !== COUNTERS)
    const walks = steps.filter((step) => WALK.test(step) && !(PAGE.test(text) && step.startsWith('SEARCH')))
    expect([...walks, ...steps.filter((step) => step.includes('TEMP B-TREE'))], text).toEqual([])
  }
})

test('no list of sessions or memories reads the rows of other owners', async () => {
  await useLists()
  const texts = [...db.texts].filter((text) => /^\s*SELECT/.test(text))
  expect(texts.length).toBeGreaterThan(8)
  for (const text of texts) {
    const steps = db.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${text}`).map(({ detail }) => detail)
    // A page of all owners is in the order of an index, of which it reads the beginning. `newest` and `found` are bounded subqueries.
    const scans = steps.filter((step) => step.startsWith('SCAN') && !/\bUSING (?:COVERING )?INDEX\b|^SCAN (?:newest|found)$/.test(step))
    const sorted = steps.filter((step) => step.includes('TEMP B-TREE'))
    expect(scans, text).toEqual([])
    // The sessions of one sender, and the newest memories of three owners, are sorted.
    if (!/tail = |updatedAtMs/.test(text)) expect(sorted, text).toEqual([])
  }
})

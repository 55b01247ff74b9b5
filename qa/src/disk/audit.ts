/** Opens the state after a run or a power cut on a healthy disk and compares it with the acknowledged data. */
import { DatabaseSync } from 'node:sqlite'
import { errorText, type InboxEntry, type Store } from '@sluice/sdk'
import { openStore } from '@sluice/store'
import { problemsOf, type StoredArrival } from './arrival-problems.ts'
import type { Marks } from './marks.ts'
import { quietHost } from './store-setup.ts'
import { arrivalOf, messageIdsOf, runIdOf, turnIdOf } from './workload.ts'

const ROWS_MAX = 10_000

/** Returns the problems; empty without any. */
export async function audit(file: string, marks: Marks): Promise<string[]> {
  const problems = [...marks.wrong]
  let store: Store | undefined
  try {
    store = openStore({ file, ...quietHost })
    problems.push(...fileProblems(file))
    problems.push(...(await compare(store, marks)))
    problems.push(...(await procedureProblems(store, marks)))
    const refused = [...marks.refused].filter((subject) => /^\d+$/.test(subject))
    if (refused.length > 0) {
      // A refused sender sends the message again, whether or not it was stored here.
      for (const at of refused) await store.inbox.keep(arrivalOf(Number(at)))
      problems.push(...(await compare(store, { ...marks, kept: new Set([...marks.kept, ...refused]) })))
    }
  } catch (error) {
    problems.push(errorText(error))
  } finally {
    await store?.close()
  }
  return [...new Set(problems)]
}

/** Checks the file in this thread: `check` of the store starts one for each call, which takes longer than the rest of an audit. */
function fileProblems(file: string): string[] {
  const db = new DatabaseSync(file, { readOnly: true })
  try {
    const faults = db
      .prepare('PRAGMA integrity_check')
      .all()
      .map((row) => String(row.integrity_check))
    const dangling = db
      .prepare('PRAGMA foreign_key_check')
      .all()
      .map(({ table, rowid }) => `row ${rowid} of ${table} refers to a missing row`)
    return [...faults.filter((fault) => fault !== 'ok'), ...dangling].map((detail) => `check: ${detail}`)
  } finally {
    db.close()
  }
}

async function compare(store: Store, marks: Marks): Promise<string[]> {
  const entries = await entriesOf(store)
  const byId = Map.groupBy(entries, ({ messageId }) => messageId)
  const arrivals = new Set([...marks.kept].map(Number))
  for (const { messageId } of entries) arrivals.add(Math.floor(Number(messageId)))

  const problems: string[] = []
  for (const at of arrivals) {
    const turn = await store.turns.get(turnIdOf(at))
    const stored: StoredArrival = { entries: messageIdsOf(at).map((id) => byId.get(id) ?? []), isTurnDone: turn?.status === 'done' }
    problems.push(...problemsOf(at, stored, (kind) => marks[kind].has(String(at))))
  }
  const replies = await store.outbox.list({ limit: ROWS_MAX })
  const strays = replies.length - entries.flatMap((entry) => entry.replies).length
  if (strays !== 0) problems.push(`${strays} replies belong to no message`)
  return [...problems, ...(await historyProblems(store, entries))]
}

async function entriesOf(store: Store): Promise<InboxEntry[]> {
  const rows = await store.inbox.list({ limit: ROWS_MAX })
  const entries = await Promise.all(rows.map(({ number }) => store.inbox.get(number)))
  return entries.filter((entry) => entry !== undefined)
}

/** Checks that a session has question and answer of each finished turn exactly once. */
async function historyProblems(store: Store, entries: readonly InboxEntry[]): Promise<string[]> {
  const problems: string[] = []
  const done = entries.filter(({ state }) => state === 'done')
  for (const [session, { length: turns }] of Map.groupBy(done, (entry) => entry.session)) {
    const { length } = await store.sessions.history(session, ROWS_MAX)
    if (length !== 2 * turns) problems.push(`${session} has ${length} messages for ${turns} turns`)
  }
  return problems
}

/** Checks that runs and records match, that acknowledged runs and decisions are stored, and that the chain of records verifies. */
async function procedureProblems(store: Store, marks: Marks): Promise<string[]> {
  const problems: string[] = []
  const { broken } = await store.sops.verify()
  if (broken) problems.push(`audit log: ${broken.why}`)
  const runs = (await store.sops.runs({ limit: ROWS_MAX })).map(({ id }) => id).reverse()
  const recorded = (await store.sops.audit({ limit: ROWS_MAX })).map(({ run }) => run)
  if (runs.join() !== recorded.join()) problems.push(`the runs ${runs.join()} do not match the records ${recorded.join()}`)
  for (const at of marks.fired) if (!runs.includes(runIdOf(Number(at)))) problems.push(`the run ${at} is lost`)
  for (const at of marks.decided) {
    const approval = await store.approvals.get({ runId: runIdOf(Number(at)), stepId: 'step-1' })
    if (approval?.state !== 'approved') problems.push(`the approval ${at} is ${approval?.state ?? 'lost'}`)
  }
  return problems
}

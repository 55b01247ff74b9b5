/** Opens what a run or a power cut left, with a healthy disk, and compares it with what was acknowledged. */
import { errorText, type InboxEntry, type Store } from '@sluice/sdk'
import { openStore } from '@sluice/store'
import { type Found, problemsOf } from './arrival-problems.ts'
import { quietHost } from './quiet-host.ts'
import type { Told } from './told.ts'
import { arrivalOf, messageIdsOf, runIdOf, turnIdOf } from './workload.ts'

const ROWS_MAX = 10_000

/** What is wrong; empty when all is well. */
export async function audit(file: string, told: Told): Promise<string[]> {
  const problems = [...told.wrong]
  let store: Store | undefined
  try {
    store = openStore({ file, ...quietHost })
    problems.push(...(await store.check()).map(({ detail }) => `check: ${detail}`))
    problems.push(...(await compare(store, told)))
    problems.push(...(await procedureProblems(store, told)))
    const refused = [...told.refused].filter((subject) => /^\d+$/.test(subject))
    if (refused.length > 0) {
      // Whoever was refused sends it again, whatever became of it here.
      for (const at of refused) await store.inbox.keep(arrivalOf(Number(at)))
      problems.push(...(await compare(store, { ...told, kept: new Set([...told.kept, ...refused]) })))
    }
  } catch (error) {
    problems.push(errorText(error))
  } finally {
    await store?.close()
  }
  return [...new Set(problems)]
}

async function compare(store: Store, told: Told): Promise<string[]> {
  const entries = await entriesOf(store)
  const byId = Map.groupBy(entries, ({ messageId }) => messageId)
  const arrivals = new Set([...told.kept].map(Number))
  for (const { messageId } of entries) arrivals.add(Math.floor(Number(messageId)))

  const problems: string[] = []
  for (const at of arrivals) {
    const turn = await store.turns.get(turnIdOf(at))
    const found: Found = { entries: messageIdsOf(at).map((id) => byId.get(id) ?? []), isTurnDone: turn?.status === 'done' }
    problems.push(...problemsOf(at, found, (kind) => told[kind].has(String(at))))
  }
  const replies = await store.outbox.list({ limit: ROWS_MAX })
  const strays = replies.length - entries.flatMap((entry) => entry.replies).length
  if (strays !== 0) problems.push(`${strays} replies answer nothing`)
  return [...problems, ...(await historyProblems(store, entries))]
}

async function entriesOf(store: Store): Promise<InboxEntry[]> {
  const rows = await store.inbox.list({ limit: ROWS_MAX })
  const entries = await Promise.all(rows.map(({ number }) => store.inbox.get(number)))
  return entries.filter((entry) => entry !== undefined)
}

/** A session has question and answer of each turn that ended, once. */
async function historyProblems(store: Store, entries: readonly InboxEntry[]): Promise<string[]> {
  const problems: string[] = []
  const done = entries.filter(({ state }) => state === 'done')
  for (const [session, { length: turns }] of Map.groupBy(done, (entry) => entry.session)) {
    const { length } = await store.sessions.history(session, ROWS_MAX)
    if (length !== 2 * turns) problems.push(`${session} has ${length} messages of ${turns} turns`)
  }
  return problems
}

/** A run is there with its record, once each, and what was decided is; the chain of records is whole. */
async function procedureProblems(store: Store, told: Told): Promise<string[]> {
  const problems: string[] = []
  const { broken } = await store.sops.verify()
  if (broken) problems.push(`audit log: ${broken.why}`)
  const runs = (await store.sops.runs({ limit: ROWS_MAX })).map(({ id }) => id).reverse()
  const recorded = (await store.sops.audit({ limit: ROWS_MAX })).map(({ run }) => run)
  if (runs.join() !== recorded.join()) problems.push(`there are runs ${runs.join()}, and records of ${recorded.join()}`)
  for (const at of told.fired) if (!runs.includes(runIdOf(Number(at)))) problems.push(`the run ${at} is lost`)
  for (const at of told.decided) {
    const approval = await store.approvals.get({ runId: runIdOf(Number(at)), stepId: 'step-1' })
    if (approval?.state !== 'approved') problems.push(`the approval ${at} is ${approval?.state ?? 'lost'}`)
  }
  return problems
}

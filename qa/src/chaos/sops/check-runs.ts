/** Every run has ended, its records keep the rules of the audit log, and no instant of the clock was left out or came twice. */
import { SOP_ENDED, type SopRun } from '@sluice/sdk'
import { auditProblems } from '@sluice/sop/testing/audit-problems'
import { countsOf } from '../counts-of.ts'
import type { Violation } from '../history.ts'
import type { SopsHistory, SopsView } from './history.ts'
import { BEAT, BEAT_MS } from './procedures.ts'

const STOP_MS_MAX = 8000

export function checkRuns({ seen }: SopsHistory, { problems, runs, audit }: SopsView): Violation[] {
  const found: Violation[] = problems.map((detail) => ({ rule: 'file', detail }))
  const tell = (rule: string, detail: string) => void found.push({ rule, detail })
  let endingMs = 0
  for (const event of seen) {
    if (event.type === 'ending') endingMs = event.wallMs
    if (event.type !== 'ended' || event.by !== 'SIGTERM') continue
    const tookMs = event.wallMs - endingMs
    if (event.code !== 0) tell('stop', `SIGTERM ended the daemon with ${event.code}`)
    if (tookMs > STOP_MS_MAX) tell('stop', `SIGTERM took ${tookMs} ms, and no step takes so long`)
  }
  const records = Map.groupBy(audit, ({ run }) => run)
  for (const run of runs) {
    for (const problem of auditProblems(run, records.get(run.id) ?? [])) tell('audit', problem)
    if (!SOP_ENDED.includes(run.status)) tell('ended', `the run ${run.id} of ${run.sop} is ${run.status} at step ${run.step}`)
  }
  const known = new Set(runs.map(({ id }) => id))
  for (const id of records.keys()) if (id !== null && !known.has(id)) tell('lost', `the run ${id} is on record and is gone`)
  for (const detail of beatProblems(runs.filter(({ sop }) => sop === BEAT))) tell('clock', detail)
  return found
}

/** Each instant at most once, and whatever lies between two is said to have been missed. */
function beatProblems(runs: readonly SopRun[]): string[] {
  const beats = runs
    .map(({ event }) => JSON.parse(event.payload ?? '{}') as { readonly scheduled_at: string; readonly missed: number })
    .map(({ scheduled_at, missed }) => ({ atMs: Date.parse(scheduled_at), missed }))
    .toSorted((a, b) => a.atMs - b.atMs)
  const twice = [...countsOf(beats.map(({ atMs }) => atMs))].filter(([, times]) => times > 1)
  const gaps = beats.filter(({ atMs, missed }, index) => index > 0 && atMs - (1 + missed) * BEAT_MS > (beats[index - 1]?.atMs ?? 0))
  return [
    ...twice.map(([atMs, times]) => `${new Date(atMs).toISOString()} started ${times} runs`),
    ...gaps.map(({ atMs, missed }) => `${new Date(atMs).toISOString()} tells of ${missed} missed instants, and there were more`),
  ]
}

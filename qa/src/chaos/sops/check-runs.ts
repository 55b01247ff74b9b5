/** Checks that every run has ended, that the audit log follows its rules, and that the schedule missed and repeated no instant. */
import { type AuditRow, SOP_ENDED, type SopRun } from '@sluice/sdk'
import { auditProblems } from '@sluice/sop/testing/audit-problems'
import { countsOf, reporter, type Violation } from '../history.ts'
import type { SopsHistory, SopsView } from './history.ts'
import { BEAT, BEAT_MS, concurrentMaxOf } from './procedures.ts'

/** No step of these procedures takes as long. */
const STOP_MS_MAX = 8000
const RUN_ENDS: readonly string[] = ['run_completed', 'run_failed', 'run_cancelled', 'run_expired']

export function checkRuns({ seen }: SopsHistory, { problems, runs, audit }: SopsView): Violation[] {
  const { found, report } = reporter()
  for (const problem of problems) report('file', problem)
  let endingMs = 0
  for (const event of seen) {
    if (event.type === 'ending') endingMs = event.wallMs
    if (event.type !== 'ended' || event.by !== 'SIGTERM') continue
    const tookMs = event.wallMs - endingMs
    if (event.code !== 0) report('stop', `SIGTERM ended the daemon with exit code ${event.code}`)
    if (tookMs > STOP_MS_MAX) report('stop', `SIGTERM took ${tookMs} ms; the limit is ${STOP_MS_MAX} ms`)
  }
  const records = Map.groupBy(audit, ({ run }) => run)
  for (const run of runs) {
    for (const problem of auditProblems(run, records.get(run.id) ?? [])) report('audit', problem)
    if (!SOP_ENDED.includes(run.status)) report('ended', `the run ${run.id} of ${run.sop} is still ${run.status} at step ${run.step}`)
  }
  const known = new Set(runs.map(({ id }) => id))
  for (const id of records.keys()) if (id !== null && !known.has(id)) report('lost', `the run ${id} is missing, but the audit log has it`)
  for (const detail of limitProblems(audit)) report('limit', detail)
  for (const detail of beatProblems(runs.filter(({ sop }) => sop === BEAT))) report('clock', detail)
  return found
}

/** In the order of the log, never more runs of a procedure have begun and not ended than it may have at once. */
function limitProblems(audit: readonly AuditRow[]): string[] {
  const active = new Map<string, Set<string>>()
  return audit.flatMap(({ kind, sop, run, number }) => {
    const own = active.get(sop) ?? new Set()
    active.set(sop, own)
    if (kind === 'run_started') own.add(run ?? '')
    else if (RUN_ENDS.includes(kind)) own.delete(run ?? '')
    const isBeyond = kind === 'run_started' && own.size > concurrentMaxOf(sop)
    return isBeyond ? [`record ${number} begins run ${own.size} of ${sop}; at most ${concurrentMaxOf(sop)} may be active`] : []
  })
}

/** Each instant starts at most one run, and each run counts the instants that were missed before it. */
function beatProblems(runs: readonly SopRun[]): string[] {
  const beats = runs
    .map(({ event }) => JSON.parse(event.payload ?? '{}') as { readonly scheduled_at: string; readonly missed: number })
    .map(({ scheduled_at, missed }) => ({ atMs: Date.parse(scheduled_at), missed }))
    .toSorted((a, b) => a.atMs - b.atMs)
  const twice = [...countsOf(beats.map(({ atMs }) => atMs))].filter(([, times]) => times > 1)
  const gaps = beats.filter(({ atMs, missed }, index) => index > 0 && atMs - (1 + missed) * BEAT_MS > (beats[index - 1]?.atMs ?? 0))
  return [
    ...twice.map(([atMs, times]) => `${new Date(atMs).toISOString()} started ${times} runs instead of one`),
    ...gaps.map(({ atMs, missed }) => `${new Date(atMs).toISOString()} counts ${missed} missed instants, but there were more`),
  ]
}

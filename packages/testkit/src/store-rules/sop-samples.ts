/** Sample procedure runs with defaults for every member a rule does not care about. */
import type { NewAudit, SopDispatch, SopRun, SopStart, Store } from '@sluice/sdk'

/** A run of `deploy` at its first step, with status `running`. */
export const sopRun = (id: string, part: Partial<SopRun> = {}): SopRun => ({
  id,
  sop: 'deploy',
  version: '1.0.0',
  description: 'Deploys',
  priority: 'normal',
  mode: 'auto',
  steps: [
    { number: 1, title: 'Look', body: 'Look.', tools: null, requiresConfirmation: false, kind: 'execute', input: null, output: null },
    { number: 2, title: 'Go', body: 'Go.', tools: ['shell'], requiresConfirmation: true, kind: 'execute', input: null, output: null },
  ],
  event: { source: 'webhook', topic: '/deploy', payload: '{"ref":"main"}', atMs: 1_000, by: 'device:d1' },
  status: 'running',
  step: 1,
  gate: null,
  gates: 0,
  attempt: null,
  report: null,
  results: [],
  startedAtMs: 1_000,
  endedAtMs: null,
  reason: null,
  ...part,
})

/** The same run after its end. */
export const ended = (run: SopRun, part: Partial<SopRun> = {}): SopRun => ({ ...run, status: 'completed', endedAtMs: 2_000, ...part })

/** A record of the audit log. */
export const audited = (kind: NewAudit['kind'], part: Partial<NewAudit> = {}): NewAudit => ({
  kind,
  atMs: 1_000,
  sop: 'deploy',
  run: null,
  step: null,
  by: 'engine',
  reason: null,
  detail: {},
  ...part,
})

/** Limits that no rule reaches; no run waits. */
export const UNLIMITED: SopStart['limits'] = { cooldownMs: 0, concurrentMax: 1_000_000, waitingMax: 0, countsPaused: true, totalMax: 0 }

/** The start of a run, with limits if some are given. */
export const startOf = (run: SopRun, limits: Partial<SopStart['limits']> = {}, holdsOne = false): SopStart => ({
  run,
  audit: [audited('run_started', { sop: run.sop, run: run.id, by: run.event.by })],
  limits: { ...UNLIMITED, ...limits },
  holdsOne,
  held: (reason) => ({
    run: { ...run, status: 'waiting', reason },
    audit: [audited('run_waiting', { sop: run.sop, run: run.id, by: run.event.by, reason })],
  }),
  skipped: (reason) => audited('trigger_skipped', { sop: run.sop, by: run.event.by, reason }),
})

/** Starts runs of `deploy` in one call, without limits. */
export const startRuns = (store: Store, ids: readonly string[], part: Partial<SopRun> = {}): Promise<readonly SopDispatch[]> =>
  store.sops.start(
    ids.map((id) => startOf(sopRun(id, part))),
    { atMs: 1_000 },
  )

/** Starts a run and ends it. */
export async function runOnce(store: Store, id: string, part: Partial<SopRun> = {}): Promise<SopRun> {
  const run = sopRun(id, part.sop === undefined ? {} : { sop: part.sop })
  await store.sops.start([startOf(run)], { atMs: 1_000 })
  const over = ended(run, part)
  if (!(await store.sops.advance(run, over, []))) throw new Error(`the run ${id} could not be ended`)
  return over
}

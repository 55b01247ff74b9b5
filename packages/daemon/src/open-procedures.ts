/** The procedure engine alone: runs on the store of a data directory, without server and channels. */
import type { SopRun, Sops } from '@sluice/sdk'
import { AppError } from '@sluice/sdk'
import type { EmbeddedTurns } from './embedded-turns.ts'
import { embeddedTurns } from './embedded-turns.ts'
import type { EmbeddingOptions } from './embedding-options.ts'
import { keepAlive, openAlone } from './open-agent.ts'
import { startProcedures } from './procedures.ts'
import { DRAIN_MS } from './stop-times.ts'

/** The actor of runs and decisions in the audit log. */
const PROGRAM = 'cli:embedded'

export interface ProceduresAlone extends Pick<EmbeddedTurns, 'on'>, AsyncDisposable {
  /** The engine: definitions, runs, events that start them, cancellations. */
  readonly sops: Sops
  /** Starts a procedure by its name. Resolves to the id of the run. Rejects with `not_found`, or with `conflict` when a limit prevents it. */
  start(name: string, payload?: unknown): Promise<string>
  /** Lets a run continue that waits for a person. Rejects with `not_found`, or with `conflict` when it does not wait. */
  approve(runId: string): Promise<SopRun>
  /** Resolves once the run has ended or waits for a person. Rejects with `not_found`. */
  settled(runId: string): Promise<SopRun>
  /** Gives steps ten seconds to end, and releases everything; the next start resumes unfinished runs. Idempotent. */
  close(): Promise<void>
}

/**
 * Loads the procedures of `[sop] sops_dir` and watches them, resumes unfinished runs and starts due ones. Steps without a
 * model need no provider. Rejects as `createSluice` does.
 */
export async function openProcedures(options: EmbeddingOptions): Promise<ProceduresAlone> {
  const { runtime, close: closeRuntime } = await openAlone(options, { needsModel: false })
  try {
    const procedures = await startProcedures(runtime)
    const sops = runtime.sops()
    if (!sops) throw new AppError('internal', 'The procedures have not started')
    let closing: Promise<void> | undefined
    const close = () => (closing ??= keepAlive(procedures.stop(DRAIN_MS).then(closeRuntime)))
    const { on } = embeddedTurns(runtime)
    return {
      sops,
      on,
      start: (name, payload) =>
        sops.run(name, {
          payload: payload === undefined ? null : JSON.stringify(payload),
          atMs: runtime.clock.nowMs(),
          by: PROGRAM,
          standing: 'operator',
          starter: PROGRAM,
        }),
      approve: (runId) => sops.approve(runId, PROGRAM),
      settled: (runId) => settled(sops, on, runId),
      close,
      [Symbol.asyncDispose]: close,
    }
  } catch (error) {
    await closeRuntime()
    throw error
  }
}

async function settled(sops: Sops, on: EmbeddedTurns['on'], runId: string): Promise<SopRun> {
  const changed = Promise.withResolvers<void>()
  const unsubscribe = on('sop_run', (event) => {
    if (event.run_id === runId && event.status !== 'running') changed.resolve()
  })
  try {
    const run = await sops.get(runId)
    if (!run) throw new AppError('not_found', `There is no run ${runId}`)
    if (run.status !== 'running') return run
    await changed.promise
    return (await sops.get(runId)) ?? run
  } finally {
    unsubscribe()
  }
}

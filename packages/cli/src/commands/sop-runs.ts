/** `sluice sop run`, `runs`, `status` and `cancel`: the runs of procedures. The daemon works on them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { AppError, oneLine, SOP_ENDED, type SopRun, type SopStore } from '@sluice/sdk'
import { shownRun } from '@sluice/sop/shown'
import type { CliContext, Output } from '../context.ts'
import { findByPrefix } from '../find-by-prefix.ts'
import { operator } from '../operator.ts'
import { LIMIT_MAX, limitOption, wholeNumber } from '../option-values.ts'
import { ERROR_CHARS_MAX, formatTime, NAME_CHARS_MAX, printBlock, printFields, TEXT_CHARS_MAX } from '../print-details.ts'
import { probeDaemon } from '../probe-daemon.ts'
import { readInput } from '../read-input.ts'
import { openEngine } from '../sops/open-engine.ts'
import { withStore } from '../with-store.ts'

const PAYLOAD_BYTES_MAX = 64 * 1024
const WAIT_SECS_MAX = 86_400
const POLL_MS = 200

/** `sluice sop run`: starts a procedure by hand. Exits with 1 if the followed run fails or is cancelled. */
export const start = (context: CliContext): Promise<number> =>
  withStore(context, async (store, clock) => {
    const { out, json, options, args, dataDir } = context
    const waitMs = typeof options.wait === 'string' ? wholeNumber('--wait', options.wait, 0, WAIT_SECS_MAX) * 1000 : 0
    const engine = await openEngine(context, store)
    const runId = await engine.run(args[0] ?? '', { payload: await readPayload(context), atMs: clock.nowMs(), by: operator() })
    const daemon = await probeDaemon(dataDir)
    if (!daemon.running) out.warn('no daemon is running: the run is stored and starts with the next daemon')
    if (!json) out.print(`run ${runId}`)
    const followed = await follow(store.sops, runId, waitMs, context)
    if (json) out.json(followed ? shownRun(followed) : { run_id: runId })
    return followed?.status === 'failed' || followed?.status === 'cancelled' ? 1 : 0
  })

/** Returns `--payload`, or standard input if it is `-`; null if the option is absent. */
async function readPayload({ options, stdin }: CliContext): Promise<string | null> {
  const { payload } = options
  if (typeof payload !== 'string') return null
  const text = payload === '-' ? await readInput(stdin, PAYLOAD_BYTES_MAX) : payload
  if (Buffer.byteLength(text) > PAYLOAD_BYTES_MAX) throw new AppError('too_large', `a payload has at most ${PAYLOAD_BYTES_MAX} bytes`)
  return text
}

/** Prints the progress of a run until it ends, the time is over, or the operator interrupts; returns the run as it is then. */
async function follow(sops: SopStore, runId: string, waitMs: number, { out, json, interrupted }: CliContext): Promise<SopRun | undefined> {
  const signal = interrupted()
  const endMs = performance.now() + waitMs
  const printed = new Set<string>()
  for (;;) {
    const run = await sops.get(runId)
    for (const line of run && !json ? progressLines(run) : []) {
      if (!printed.has(line)) out.print(line)
      printed.add(line)
    }
    if (!run || SOP_ENDED.includes(run.status) || performance.now() >= endMs || signal.aborted) return run
    await sleep(Math.min(POLL_MS, Math.max(1, endMs - performance.now())), undefined, { signal }).catch(() => {})
  }
}

/** `sluice sop runs`: lists runs, newest first. */
export const list = (context: CliContext): Promise<number> =>
  withStore(context, async ({ sops }) => {
    const { out, json, options } = context
    const limit = limitOption(context)
    const found = await sops.runs({
      limit: limit + 1,
      ...(typeof options.sop === 'string' && { sop: options.sop }),
      ...(typeof options.before === 'string' && { before: options.before }),
      ...(options.active === true && { active: true }),
    })
    const runs = found.slice(0, limit)
    if (json) out.json(runs.map(shownRun))
    else if (runs.length === 0) out.print('no runs')
    else
      out.table(
        ['run', 'procedure', 'status', 'step', 'started', 'reason'],
        runs.map((run) => [
          run.id,
          oneLine(run.sop, NAME_CHARS_MAX),
          run.status,
          `${run.step}/${run.steps.length}`,
          formatTime(run.startedAtMs) ?? '',
          oneLine(run.reason ?? '', ERROR_CHARS_MAX),
        ]),
      )
    if (found.length > limit) out.warn(`older ones: add --before ${runs.at(-1)?.id}`)
    return 0
  })

/** `sluice sop status`: shows one run. */
export const status = (context: CliContext): Promise<number> =>
  withStore(context, async ({ sops }) => {
    const { out, json, args } = context
    const run = await findRun(sops, args[0])
    if (json) out.json(shownRun(run))
    else printRun(out, run)
    return 0
  })

export const cancel = (context: CliContext): Promise<number> =>
  withStore(context, async (store) => {
    const { out, json, args } = context
    const engine = await openEngine(context, store)
    const { id } = await findRun(store.sops, args[0])
    const run = await engine.cancel(id, operator(), args[1] ?? 'cancelled by hand')
    if (json) out.json(shownRun(run))
    else out.print(`run ${run.id} is cancelled`)
    return 0
  })

/**
 * Finds a run by its id, or by a prefix that no other of the 500 newest runs shares. Throws `not_found` if there is no such run,
 * and `invalid_request` if several ids begin with the prefix.
 */
export async function findRun(sops: Pick<SopStore, 'get' | 'runs'>, id = ''): Promise<SopRun> {
  const exact = await sops.get(id)
  if (exact) return exact
  const found = findByPrefix(id, await sops.runs({ limit: LIMIT_MAX }), (run) => run.id, 'runs')
  if (!found) throw new AppError('not_found', `There is no run ${id}: 'sluice sop runs' lists them`)
  return found
}

function printRun(out: Output, run: SopRun): void {
  const { event } = run
  printFields(out, {
    run: run.id,
    procedure: `${run.sop} ${run.version}`,
    status: run.status,
    mode: run.mode,
    step: `${run.step} of ${run.steps.length}`,
    'triggered by': `${event.source} ${event.topic}, ${event.by}`,
    started: formatTime(run.startedAtMs),
    ended: formatTime(run.endedAtMs),
    reason: run.reason,
  })
  if (event.payload !== null) printBlock(out, 'payload', event.payload)
  out.print('')
  for (const line of progressLines(run)) out.print(line)
}

/** Returns one line for each event of a run so far. Later calls add lines and do not change earlier ones. */
function progressLines(run: SopRun): string[] {
  const { steps, results, gate, step, endedAtMs, reason } = run
  const lines = results.map((result) => {
    const title = oneLine(steps[result.step - 1]?.title ?? '', TEXT_CHARS_MAX)
    return `step ${result.step}/${steps.length} ${title}: ${result.status}: ${oneLine(result.output, TEXT_CHARS_MAX)}`
  })
  if (gate) lines.push(`step ${step}/${steps.length} waits for a person: sluice approvals approve ${run.id} ${gate.stepId}`)
  if (endedAtMs !== null) lines.push(`${run.status}${reason === null ? '' : `: ${oneLine(reason, ERROR_CHARS_MAX)}`}`)
  return lines
}

/** `sluice sop run`, `runs`, `status`, `cancel` and `replay`: the runs of procedures. The daemon works on them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { AppError, oneLine, SOP_ENDED } from '@sluice/sdk'
import type { ShownRun } from '@sluice/sop/shown'
import { type Api, apiPath } from '../api/api.ts'
import { deviceNames } from '../api/device-names.ts'
import { withApi } from '../api/open-api.ts'
import { type Page, readPages } from '../api/pages.ts'
import type { CliContext, Output } from '../context.ts'
import { findByPrefix } from '../find-by-prefix.ts'
import { limitOption, PAGE_MAX, textOption, wholeNumber } from '../option-values.ts'
import { ERROR_CHARS_MAX, NAME_CHARS_MAX, printBlock, printFields, TEXT_CHARS_MAX } from '../print-details.ts'
import { readInput } from '../read-input.ts'

const PAYLOAD_BYTES_MAX = 64 * 1024
const WAIT_SECS_MAX = 86_400
const POLL_MS = 200
const NOBODY_WORKS =
  "--wait needs a daemon, and none is running: start one with 'sluice daemon', or leave --wait out to store the run for the next daemon"

/** `sluice sop run`: starts a procedure by hand. Exits with 1 if the followed run fails or is cancelled. */
export async function start(context: CliContext): Promise<number> {
  const { out, json, options, args } = context
  const waitMs = typeof options.wait === 'string' ? wholeNumber('--wait', options.wait, 0, WAIT_SECS_MAX) * 1000 : 0
  const payload = await readPayload(context)
  return withApi(
    context,
    async (api) => {
      const isWorkedOn = api.answerer !== 'in process'
      if (waitMs > 0 && !isWorkedOn) throw new AppError('unavailable', NOBODY_WORKS)
      const begun = await api.post<Begun>(apiPath('/api/sops', args[0] ?? '', 'runs'), { payload_text: payload })
      const { run_id } = begun
      if (!isWorkedOn) out.warn('no daemon is running: the run is stored and starts with the next daemon')
      if (!json) out.print(begunLine(begun))
      const followed = await follow(api, run_id, isWorkedOn ? waitMs : 0, context)
      if (json) out.json(followed)
      return ['failed', 'cancelled', 'expired'].includes(followed.status) ? 1 : 0
    },
    { config: true },
  )
}

/** The answer of a start. */
interface Begun {
  readonly run_id: string
  readonly status: 'started' | 'waiting'
  readonly reason: string | null
}

const begunLine = ({ run_id, status, reason }: Begun): string => `run ${run_id}${status === 'waiting' ? ` waits: ${reason}` : ''}`

/** Returns `--payload`, or standard input if it is `-`; undefined if the option is absent. */
async function readPayload({ options, stdin }: CliContext): Promise<string | undefined> {
  const { payload } = options
  if (typeof payload !== 'string') return undefined
  const text = payload === '-' ? await readInput(stdin, PAYLOAD_BYTES_MAX) : payload
  if (Buffer.byteLength(text) > PAYLOAD_BYTES_MAX) throw new AppError('too_large', `a payload has at most ${PAYLOAD_BYTES_MAX} bytes`)
  return text
}

/** Prints the progress of a run until it ends, the time is over, or the operator interrupts; returns the run as it is then. */
async function follow(api: Api, runId: string, waitMs: number, { out, json, interrupted }: CliContext): Promise<ShownRun> {
  const signal = interrupted()
  const endMs = performance.now() + waitMs
  const printed = new Set<string>()
  for (;;) {
    const run = await api.get<ShownRun>(apiPath('/api/sops/runs', runId))
    for (const line of json ? [] : progressLines(run)) {
      if (!printed.has(line)) out.print(line)
      printed.add(line)
    }
    const waiting = json ? undefined : waitingLine(run)
    if (waiting !== undefined && !printed.has(waiting)) out.hint(waiting)
    if (waiting !== undefined) printed.add(waiting)
    if (SOP_ENDED.includes(run.status) || performance.now() >= endMs || signal.aborted) return run
    await sleep(Math.min(POLL_MS, Math.max(1, endMs - performance.now())), undefined, { signal }).catch(() => {})
  }
}

/** `sluice sop runs`: lists runs, newest first. */
export async function list(context: CliContext): Promise<number> {
  const { out, json, options } = context
  const limit = limitOption(context)
  const filter = {
    sop: textOption(context, 'sop'),
    status: textOption(context, 'status'),
    ...(options.active === true && { active: true }),
  }
  return withApi(context, async (api) => {
    const { items, next } = await readRuns(api, limit, filter, textOption(context, 'before'))
    if (json) out.json(items)
    else if (items.length === 0) out.print('no runs')
    else {
      const named = await deviceNames(
        api,
        items.map(({ reason }) => reason),
      )
      out.table(
        ['run', 'procedure', 'status', 'step', 'started', 'reason'],
        items.map((run) => [
          run.run_id,
          oneLine(run.sop, NAME_CHARS_MAX),
          run.status,
          `${run.step}/${run.steps.length}`,
          run.started_at,
          oneLine(named(run.reason), ERROR_CHARS_MAX),
        ]),
      )
    }
    if (next !== null) out.warn(`older ones: add --before ${next}`)
    return 0
  })
}

const readRuns = (
  api: Api,
  limit: number,
  filter: { readonly sop?: string | undefined; readonly status?: string | undefined; readonly active?: boolean } = {},
  first?: string,
): Promise<Page<ShownRun, string>> =>
  readPages(limit, PAGE_MAX, async (size, before = first) => {
    const page = await api.get<{ runs: ShownRun[]; next: string | null }>('/api/sops/runs', { ...filter, limit: size, before })
    return { items: page.runs, next: page.next }
  })

/** `sluice sop status`: shows one run. */
export const status = async (context: CliContext): Promise<number> =>
  withApi(context, async (api) => {
    const { out, json, args } = context
    const run = await findRun(api, args[0])
    if (json) out.json(run)
    else {
      const named = await deviceNames(api, [run.event.by, run.reason, ...run.results.map(({ output }) => output)])
      printRun(out, run, named)
    }
    return 0
  })

export const cancel = async (context: CliContext): Promise<number> =>
  withApi(
    context,
    async (api) => {
      const { out, json, args } = context
      const { run_id } = await findRun(api, args[0])
      const run = await api.post<ShownRun>(apiPath('/api/sops/runs', run_id, 'cancel'), { reason: args[1] })
      if (json) out.json(run)
      else out.print(`run ${run.run_id} is cancelled`)
      return 0
    },
    { config: true },
  )

/** `sluice sop replay`: starts the procedure of a run once more that failed, was cancelled or expired. */
export const replay = async (context: CliContext): Promise<number> =>
  withApi(
    context,
    async (api) => {
      const { out, json, args } = context
      const { run_id } = await findRun(api, args[0])
      const begun = await api.post<Begun>(apiPath('/api/sops/runs', run_id, 'replay'))
      if (json) out.json(begun)
      else out.print(begunLine(begun))
      return 0
    },
    { config: true },
  )

/**
 * Finds a run by its id, or by a prefix that no other of the 500 newest runs shares. Throws `not_found` without such a run,
 * and `invalid_request` if several ids begin with the prefix.
 */
async function findRun(api: Api, id = ''): Promise<ShownRun> {
  try {
    return await api.get<ShownRun>(apiPath('/api/sops/runs', id))
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'not_found') throw error
  }
  const found = findByPrefix(id, (await readRuns(api, PAGE_MAX)).items, (run) => run.run_id, 'runs')
  if (!found) throw new AppError('not_found', `There is no run ${id}: 'sluice sop runs' lists them`)
  return found
}

/** `named` puts the names of devices in place of their ids. */
function printRun(out: Output, run: ShownRun, named: (text: string | null) => string): void {
  const { event } = run
  printFields(out, {
    run: run.run_id,
    procedure: `${run.sop} ${run.version}`,
    status: run.status,
    mode: run.mode,
    step: `${run.step} of ${run.steps.length}`,
    'triggered by': `${event.source} ${event.topic}, ${named(event.by)}`,
    started: run.started_at,
    ended: run.ended_at,
    reason: run.reason && named(run.reason),
  })
  if (event.payload !== null) printBlock(out, 'payload', event.payload)
  out.print('')
  for (const line of progressLines(run)) out.print(named(line))
  const waiting = waitingLine(run)
  if (waiting !== undefined) out.hint(waiting)
}

/** Returns one line for each event of a run so far. Later calls add lines and do not change earlier ones. */
function progressLines({ status: state, steps, results, ended_at, reason }: ShownRun): string[] {
  const lines = results.map((result) => {
    const title = oneLine(steps[result.step - 1]?.title ?? '', TEXT_CHARS_MAX)
    return `step ${result.step}/${steps.length} ${title}: ${result.status}: ${oneLine(result.output, TEXT_CHARS_MAX)}`
  })
  if (ended_at !== null) lines.push(`${state}${reason === null ? '' : `: ${oneLine(reason, ERROR_CHARS_MAX)}`}`)
  return lines
}

/** Returns the line for the step that waits for a person, with the command that decides it; undefined if none waits. */
const waitingLine = ({ run_id, steps, waits_for, step }: ShownRun): string | undefined =>
  waits_for ? `step ${step}/${steps.length} waits for a person: sluice approvals approve ${run_id} ${waits_for.step_id}` : undefined

/** `sluice sop runs`: runs of procedures, newest first; `show` one of them, or `cancel` it. */

import { oneLine, type SopRun } from '@sluice/sdk'
import { shownRun } from '@sluice/sop/shown'
import { cliUser } from '../cli-user.ts'
import type { CliContext, Output } from '../context.ts'
import { printBlock, printFields, time } from '../deliveries/show.ts'
import { ERROR_CHARS_MAX, NAME_CHARS_MAX } from '../deliveries/widths.ts'
import { openEngine } from '../sops/engine.ts'
import { findRun } from '../sops/find-run.ts'
import { progressLines } from '../sops/run-lines.ts'
import { wholeNumber } from '../whole-number.ts'
import { withStore } from '../with-store.ts'

const LIMIT = 50
const LIMIT_MAX = 500

export const list = (context: CliContext): Promise<number> =>
  withStore(context, async ({ store }) => {
    const { out, json, options } = context
    const limit = typeof options.limit === 'string' ? wholeNumber('--limit', options.limit, 1, LIMIT_MAX) : LIMIT
    const found = await store.sops.runs({
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
          time(run.startedAtMs) ?? '',
          oneLine(run.reason ?? '', ERROR_CHARS_MAX),
        ]),
      )
    if (found.length > limit) out.warn(`older ones: add --before ${runs.at(-1)?.id}`)
    return 0
  })

export const show = (context: CliContext): Promise<number> =>
  withStore(context, async ({ store }) => {
    const { out, json, args } = context
    const run = await findRun(store, args[0])
    if (json) out.json(shownRun(run))
    else print(out, run)
    return 0
  })

export const cancel = (context: CliContext): Promise<number> =>
  withStore(context, async ({ store }) => {
    const { out, json, args } = context
    const engine = await openEngine(context, store)
    const run = await engine.cancel((await findRun(store, args[0])).id, cliUser(), args[1] ?? 'cancelled by hand')
    if (json) out.json(shownRun(run))
    else out.print(`run ${run.id} is cancelled`)
    return 0
  })

function print(out: Output, run: SopRun): void {
  const { event } = run
  printFields(out, {
    run: run.id,
    procedure: `${run.sop} ${run.version}`,
    status: run.status,
    mode: run.mode,
    step: `${run.step} of ${run.steps.length}`,
    'set off by': `${event.source} ${event.topic}, ${event.by}`,
    started: time(run.startedAtMs),
    ended: time(run.endedAtMs),
    reason: run.reason,
  })
  if (event.payload !== null) printBlock(out, 'payload', event.payload)
  out.print('')
  for (const line of progressLines(run)) out.print(line)
}

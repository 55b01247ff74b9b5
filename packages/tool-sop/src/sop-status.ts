/** `sop_status`: how runs stand. */
import { AppError, defineTool, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import { runLine, runText } from './run-text.ts'
import { type SopHost, sopsOf } from './sops-of.ts'

const RUNS_SHOWN = 20

export const sopStatus = (host: SopHost): Tool =>
  defineTool({
    name: 'sop_status',
    description: 'Shows how one run of a procedure stands, step by step; without a run, the newest runs.',
    risk: 'read',
    input: v.object({
      run_id: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(200), v.description('As sop_execute or this tool named it'))),
      sop_name: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(200), v.description('Only runs of this procedure'))),
    }),
    async run({ run_id, sop_name }) {
      const sops = sopsOf(host)
      if (run_id !== undefined) {
        const run = await sops.get(run_id)
        if (!run) throw new AppError('not_found', `There is no run "${run_id}".`)
        return runText(run)
      }
      const runs = await sops.runs({ limit: RUNS_SHOWN, ...(sop_name !== undefined && { sop: sop_name }) })
      return runs.length === 0 ? 'There are no runs.' : runs.map(runLine).join('\n')
    },
  })

/** `sop_execute`: starts a procedure. Who may agree to its steps is the procedure's own affair. */
import { defineTool, formatTraceContext, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import { runText } from './run-text.ts'
import { type SopHost, sopsOf } from './sops-of.ts'

const PAYLOAD_CHARS_MAX = 65_536

export const sopExecute = (host: SopHost): Tool =>
  defineTool({
    name: 'sop_execute',
    description: 'Starts a standard operating procedure by its name. It runs by itself from then on; ask sop_status how it stands.',
    risk: 'execute',
    input: v.object({
      name: v.pipe(v.string(), v.minLength(1), v.maxLength(200), v.description('As sop_list shows it')),
      payload: v.optional(
        v.pipe(v.string(), v.maxLength(PAYLOAD_CHARS_MAX), v.description('What its first step is given: JSON, or any text')),
      ),
    }),
    async run({ name, payload = null }, { turn, trace }) {
      const sops = sopsOf(host)
      const runId = await sops.run(name, { payload, atMs: host.clock.nowMs(), by: `turn:${turn}`, trace: formatTraceContext(trace) })
      const run = await sops.get(runId)
      return `Started.\n${run ? runText(run) : runId}`
    },
  })

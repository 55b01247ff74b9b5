/** `sop_advance`: what the agent says of the step it works on; it counts when its turn ends. */
import { defineTool, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import { type SopHost, sopsOf } from './sops-of.ts'

const OUTPUT_CHARS_MAX = 16_384

export const sopAdvance = (host: SopHost): Tool =>
  defineTool({
    name: 'sop_advance',
    description:
      'Reports how the step of a procedure that this turn works on went. Without a report, a turn that ends well has completed its step.',
    risk: 'write',
    input: v.object({
      run_id: v.pipe(v.string(), v.minLength(1), v.maxLength(200), v.description('The run this turn works for')),
      status: v.pipe(
        v.picklist(['completed', 'failed', 'skipped']),
        v.description('failed ends the run; skipped goes on without the step'),
      ),
      output: v.pipe(v.string(), v.maxLength(OUTPUT_CHARS_MAX), v.description('What came of it; the next step is given this')),
    }),
    async run({ run_id, status, output }, { turn }) {
      const { step } = await sopsOf(host).report(run_id, turn, { status, output })
      return `Step ${step} is reported as ${status}; that counts when this turn ends.`
    },
  })

/** The tool `browser`: one action a call, performed by the configured backend. */
import { AppError, defineTool, type Tool } from '@sluice/sdk'
import { actionInput, actionRisk, readAction } from './actions.ts'
import type { Backend } from './backend.ts'

const RESULT_CHARS_MAX = 100_000

export function browserTool(backend: Backend): Tool {
  return defineTool({
    name: 'browser',
    description:
      'Drives a browser: open a page, take a snapshot to see its elements with @refs, then click, fill, press or read by those. ' +
      'Each action returns its result, with requests that the browser was not allowed to make in brackets.',
    input: actionInput(backend.actions, backend.name),
    risk: actionRisk,
    decider: 'asker',
    // A page that is open sends what scripts in it want; to open one reveals its URL.
    egress: ({ action }) => action === 'open',
    untrusted: true,
    async run(input, context) {
      const action = readAction(input)
      if (context.signal.aborted) throw new AppError('aborted', 'The call was aborted')
      const text = await backend.run(action, context)
      const shown = text.length > RESULT_CHARS_MAX ? `${text.slice(0, RESULT_CHARS_MAX)}\n[shortened]`.toWellFormed() : text
      context.report?.({ data: shown })
      return shown
    },
  })
}

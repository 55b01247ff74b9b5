/** Opens the whole runtime, without the HTTP side, for a command that runs features. */
import type { Approver } from '@sluice/agent'
import { openRuntime } from '@sluice/runtime'
import type { CliContext } from './context.ts'

/** The caller closes it. */
export const openFromContext = (context: CliContext, approve?: Approver) =>
  openRuntime({ ...context, quiet: true, ...(approve ? { approve } : {}) })

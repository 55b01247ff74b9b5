/** Turns everything that a later step throws into an answer. */

import type { HideSecrets } from '@sluice/runtime'
import type { Logger } from '@sluice/sdk'
import type { Step } from '../context.ts'
import { problem } from '../problem.ts'
import { routeName } from './observe.ts'

/** The application must rethrow in `onError`, so that thrown values arrive here unchanged, even those that are no `Error`. */
export const problems =
  (log: Logger, hide: HideSecrets): Step =>
  async (c, next) => {
    try {
      await next()
    } catch (error) {
      c.res = problem(error, { log, hide }, routeName(c))
    }
  }

/** Turns everything that a step throws into an answer. */

import type { Runtime } from '@sluice/runtime'
import type { HttpContext, Step } from '../context.ts'
import { problem } from '../problem.ts'
import { routeName } from './observe.ts'

/** Makes the answer to a thrown value; for `onError`. */
export type ProblemHandler = (thrown: unknown, c: HttpContext) => Response

export const createProblemHandler =
  ({ log, hideSecrets }: Runtime): ProblemHandler =>
  (thrown, c) =>
    problem(thrown, { log, hide: hideSecrets }, () => routeName(c))

/** Handles thrown values that are not an `Error`, which Hono does not pass to `onError`. */
export const catchThrownValues =
  (handle: ProblemHandler): Step =>
  async (c, next) => {
    try {
      await next()
    } catch (thrown) {
      c.res = handle(thrown, c)
    }
  }

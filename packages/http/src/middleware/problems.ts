/** Turns everything that a step throws into an answer. */

import type { Runtime } from '@sluice/runtime'
import { AppError } from '@sluice/sdk'
import { type HttpContext, headersOf, type Step } from '../request/context.ts'
import { problem } from '../request/problem.ts'
import { routeName } from './observe.ts'

/** Carries the message of a refused WebSocket, because an answer to an upgrade has no body. */
const ERROR_HEADER = 'X-Error'
const NOT_PRINTABLE_ASCII = /[^ -~]/g

/** Makes the answer to a thrown value; for `onError`. */
export type ProblemHandler = (thrown: unknown, c: HttpContext) => Response

export const createProblemHandler =
  ({ log, hideSecrets }: Runtime): ProblemHandler =>
  (thrown, c) => {
    const answer = problem(thrown, { log, hide: hideSecrets }, () => routeName(c))
    for (const cookie of c.get('deletedCookies') ?? []) answer.headers.append('set-cookie', cookie)
    if (headersOf(c).get('upgrade') === null || !(thrown instanceof AppError)) return answer
    answer.headers.set(ERROR_HEADER, String(hideSecrets({ error: thrown.message }).error).replace(NOT_PRINTABLE_ASCII, '?'))
    return answer
  }

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

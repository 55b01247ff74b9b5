/** The frame around everything that is served: errors become answers, and observers are told. */

import type { Live } from '@sluice/runtime'
import { type HideSecrets, noSecrets } from '@sluice/runtime'
import type { Clock, Logger } from '@sluice/sdk'
import { type Endpoint, RequestScope } from './endpoint.ts'
import type { HttpContext } from './gate.ts'
import { headersOf } from './headers-of.ts'
import { problem } from './problem.ts'

export interface FrameOptions {
  readonly live: Pick<Live, 'observers' | 'observe'>
  readonly clock: Clock
  readonly log: Logger
  /** Masks secrets in errors. */
  readonly hide?: HideSecrets
}

export type Handler = (c: HttpContext) => Response | Promise<Response>

/**
 * The request handler around `serve`; `route` is its name for observers, a template and never a path. Synchronous where
 * `serve` is: that saves an answer a turn of the event loop.
 */
export function frame(route: string, serve: Endpoint['serve'], { live, clock, log, hide = noSecrets }: FrameOptions): Handler {
  const fail = (error: unknown): Response => problem(error, { log, hide }, route)
  const answer = (c: HttpContext, scope: RequestScope): Response | Promise<Response> => {
    try {
      const response = serve(c, scope)
      return response instanceof Promise ? response.catch(fail) : response
    } catch (error) {
      return fail(error)
    }
  }
  if (live.observers.length === 0) return (c) => answer(c, new RequestScope(headersOf(c)))

  return (c) => {
    const scope = new RequestScope(headersOf(c))
    const startMs = clock.nowMs()
    const startedAtMs = clock.monotonicMs()
    const observed = (response: Response): Response => {
      const span = { trace: scope.trace, startMs, tookMs: clock.monotonicMs() - startedAtMs }
      live.observe({ kind: 'request', method: c.req.method, route, status: response.status, span })
      return response
    }
    const response = answer(c, scope)
    return response instanceof Promise ? response.then(observed) : observed(response)
  }
}

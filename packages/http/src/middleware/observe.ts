/** Reports every request to the observers, with its route, its status and its span. */

import type { Snapshot } from '@sluice/runtime'
import type { Clock } from '@sluice/sdk'
import { routePath } from 'hono/route'
import { type HttpContext, type Step, traceOf } from '../request/context.ts'

/** The path of middleware that runs for every request, as Hono reports it. */
export const EVERY_PATH = '/*'

/** The template of the route that answers, such as `/api/turns/:id`, never the path itself; `unmatched` without a route. */
export function routeName(c: HttpContext): string {
  const path = c.get('routeName') ?? routePath(c)
  return path === EVERY_PATH ? 'unmatched' : path
}

export const observe =
  ({ observe }: Snapshot, clock: Clock): Step =>
  async (c, next) => {
    const startMs = clock.nowMs()
    const startedAtMs = clock.monotonicMs()
    await next()
    const span = { trace: traceOf(c), startMs, tookMs: clock.monotonicMs() - startedAtMs }
    observe({ kind: 'request', method: c.req.method, route: routeName(c), status: c.res.status, span })
  }

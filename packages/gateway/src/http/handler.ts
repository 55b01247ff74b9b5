/** The one fetch function of a daemon: it goes to the application of the generation in force. */
import type { HttpBindings } from '@hono/node-server'
import { type App, type AppOptions, createApp } from './app.ts'
import { createIngressBudget } from './ingress-budget.ts'
import { createLimits } from './limits.ts'

export type HandlerOptions = Omit<AppOptions, 'limits' | 'budget'>

export type FetchHandler = (request: Request, env: Partial<HttpBindings>) => Response | Promise<Response>

/** Makes the first application at once, and another one on the first request after a reload. */
export function createHandler(options: HandlerOptions): FetchHandler {
  const { runtime } = options
  const made = { limits: createLimits(runtime.clock), budget: createIngressBudget() }
  let generation = runtime.live().generation
  let app: App = createApp({ ...options, ...made })

  return (request, env) => {
    const current = runtime.live().generation
    if (current !== generation) {
      generation = current
      app = createApp({ ...options, ...made })
    }
    return app.fetch(request, env)
  }
}

/** The one fetch function of a daemon: it goes to the application of the generation in force. */
import type { HttpBindings } from '@hono/node-server'
import { type App, type AppOptions, createApp } from './app.ts'
import { createLimits } from './limits.ts'

export type HandlerOptions = Omit<AppOptions, 'limits'>

export type FetchHandler = (request: Request, env: Partial<HttpBindings>) => Response | Promise<Response>

/** Makes the first application at once, and another one on the first request after a reload. */
export function createHandler(options: HandlerOptions): FetchHandler {
  const { runtime } = options
  const limits = createLimits(runtime.clock)
  let generation = runtime.live().generation
  let app: App = createApp({ ...options, limits })

  return (request, env) => {
    const current = runtime.live().generation
    if (current !== generation) {
      generation = current
      app = createApp({ ...options, limits })
    }
    return app.fetch(request, env)
  }
}

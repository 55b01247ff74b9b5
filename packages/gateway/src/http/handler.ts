/** The one fetch function of a daemon: it goes to the application of the generation in force. */
import type { HttpBindings } from '@hono/node-server'
import { errorText } from '@sluice/sdk'
import { type App, type AppOptions, createApp } from './app.ts'
import { createLimits } from './limits.ts'

export type HandlerOptions = Omit<AppOptions, 'limits'>

export type FetchHandler = (request: Request, env: Partial<HttpBindings>) => Response | Promise<Response>

/**
 * Makes the first application at once, and another one on the first request after a reload. Throws `config_invalid`; a
 * later configuration no application can be made of is logged once, and the application before it goes on.
 */
export function createHandler(options: HandlerOptions): FetchHandler {
  const { runtime } = options
  const limits = createLimits(runtime.clock)
  let generation = runtime.live().generation
  let app: App = createApp({ ...options, limits })

  const swap = (): void => {
    generation = runtime.live().generation
    try {
      app = createApp({ ...options, limits })
    } catch (error) {
      runtime.log.error('the changed configuration does not reach HTTP', { error: errorText(error) })
    }
  }

  return (request, env) => {
    if (runtime.live().generation !== generation) swap()
    return app.fetch(request, env)
  }
}

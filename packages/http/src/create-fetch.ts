/** The application as a function from requests to responses, without a server. */
import { type App, createApp } from './app.ts'
import type { DaemonParts } from './app-parts.ts'
import type { Connection } from './context.ts'

export type Fetch = (request: Request, connection: Connection) => Response | Promise<Response>

/** Serves each request with the application of the snapshot in force. The first request after a reload makes a new application. */
export function createFetch(parts: DaemonParts): Fetch {
  const { runtime } = parts
  const makeApp = (): App => createApp({ ...parts, snapshot: runtime.snapshot() })
  let app: App | undefined = makeApp()
  runtime.onSnapshot(() => {
    app = undefined
  })
  return (request, connection) => {
    app ??= makeApp()
    return app.fetch(request, connection)
  }
}

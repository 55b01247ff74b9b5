/** The application as a function from requests to responses, without a server. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Connection } from '../request/context.ts'
import { createApp, type ServedApp } from './app.ts'
import type { DaemonParts } from './app-parts.ts'

export type Fetch = (request: Request, connection: Connection) => Response | Promise<Response>

export interface Served {
  readonly fetch: Fetch
  /** Serves a request of a route with a direct form. Returns false for every other request, which `fetch` serves. */
  serveDirectly(incoming: IncomingMessage, outgoing: ServerResponse): boolean
}

/** Serves each request with the application of the snapshot in force. The first request after a reload makes a new application. */
export function createFetch(parts: DaemonParts): Served {
  const { runtime } = parts
  const make = (): ServedApp => createApp({ ...parts, snapshot: runtime.snapshot() })
  let served: ServedApp | undefined = make()
  runtime.onSnapshot(() => {
    served = undefined
  })
  return {
    fetch(request, connection) {
      served ??= make()
      return served.app.fetch(request, connection)
    },
    serveDirectly(incoming, outgoing) {
      if (incoming.method !== 'POST') return false
      served ??= make()
      const url = incoming.url ?? ''
      const query = url.indexOf('?')
      return served.direct.get(query < 0 ? url : url.slice(0, query))?.(incoming, outgoing) ?? false
    },
  }
}

/**
 * Serves the requests of Node's servers: one to a webhook of a chat platform directly, every other one, and each upgrade, as a `Request`
 * with its connection. Loaded after the port is bound, because the adaptor loads Node's second HTTP stack, which takes as long as the
 * rest of the start.
 */
import type { RequestListener, Server } from 'node:http'
import { getRequestListener, RequestError } from '@hono/node-server'
import type { Clients } from '@sluice/delivery'
import type { Runtime } from '@sluice/runtime'
import { AppError } from '@sluice/sdk'
import type { Auth } from '../auth/auth.ts'
import { ForwardingWatch } from '../middleware/client-peer.ts'
import { createLimits } from '../middleware/rate-limit.ts'
import { BodyBudget } from '../request/body-budget.ts'
import type { Connection } from '../request/context.ts'
import { problem } from '../request/problem.ts'
import type { SubscriberCounts } from '../streams/connections.ts'
import { createStreams } from '../streams/streams.ts'
import { serveUpgrades } from '../streams/upgrades.ts'
import { createApps } from './app.ts'
import type { Intake } from './app-parts.ts'
import type { ProcessControl } from './process-control.ts'

export interface ServerParts {
  readonly runtime: Runtime
  readonly auth: Auth
  readonly clients: Clients
  /** Without it, no channel is served. */
  readonly intake?: Intake
  /** Kept up to date by the streams; without it, nothing is streamed. */
  readonly subscribers?: SubscriberCounts
  /** Returns the address that clients use; null where nothing listens. */
  readonly url: () => string | null
  /** Without it, the process of the daemon cannot be controlled. */
  readonly processControl?: ProcessControl
}

export interface Application {
  /** Answers one request of a connection that another server holds. */
  fetch(request: Request, connection: Connection): Response | Promise<Response>
  /**
   * Attaches the application to the upgrades of a server, and returns the listener for its requests. With `operator`, every peer
   * of the server is this operator.
   */
  serve(server: Server, operator?: string): RequestListener
  /** Closes every stream with its reason, and admits no more. */
  endStreams(reason: string): void
}

export function createApplication({ runtime, auth, clients, intake, subscribers, url, processControl }: ServerParts): Application {
  const streams = subscribers && createStreams(runtime, auth, subscribers)
  const served = createApps({
    runtime,
    auth,
    clients,
    url,
    limits: createLimits(runtime.store.counters),
    budget: new BodyBudget(),
    forwarding: new ForwardingWatch(runtime.log, runtime.health.ignoredForwarding),
    ...(intake && { intake }),
    ...(processControl && { processControl }),
    ...(streams && { streams: streams.endpoints }),
  })
  const fetch: Application['fetch'] = (request, connection) => served().app.fetch(request, connection)
  /** The adaptor's own answer to a request that is not valid has an empty body. */
  const errorHandler = (error: unknown): Response =>
    problem(
      error instanceof RequestError ? new AppError('invalid_request', 'The request target or the Host header is not valid') : error,
      { log: runtime.log, hide: runtime.hideSecrets },
      () => 'unmatched',
    )
  return {
    fetch,
    serve(server, operator) {
      // An upgrade is accepted by this very object.
      const handle = (request: Request, env: unknown): Response | Promise<Response> =>
        fetch(request, operator === undefined ? (env as Connection) : Object.assign(env as Connection, { operator }))
      if (streams) serveUpgrades(server, handle)
      const listener = getRequestListener(handle, { errorHandler, overrideGlobalObjects: false }) as RequestListener
      if (operator !== undefined) return listener
      return (incoming, outgoing) => {
        const direct = served().directRoute(incoming)
        if (direct) void direct(incoming, outgoing)
        else listener(incoming, outgoing)
      }
    },
    endStreams: (reason) => streams?.closeAll(reason),
  }
}

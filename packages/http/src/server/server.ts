/**
 * Connects the application to Node's servers: requests and upgrades become a `Request` with their connection. Loaded after the
 * port is bound, because the adaptor loads Node's second HTTP stack, which takes as long as the rest of the start.
 */
import type { RequestListener, Server } from 'node:http'
import type { Duplex } from 'node:stream'
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
import type { Intake } from './app-parts.ts'
import { createFetch } from './create-fetch.ts'

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

/** A peer whose upgrade was refused loses its connection after this time, or up to half of it earlier. */
const REFUSED_UPGRADE_MS = 10_000

export function createApplication({ runtime, auth, clients, intake, subscribers, url }: ServerParts): Application {
  const streams = subscribers && createStreams(runtime, auth, subscribers)
  const { fetch, serveDirectly } = createFetch({
    runtime,
    auth,
    clients,
    url,
    limits: createLimits(runtime.store.counters),
    budget: new BodyBudget(),
    forwarding: new ForwardingWatch(runtime.log, runtime.health.ignoredForwarding),
    ...(intake && { intake }),
    ...(streams && { streams: streams.endpoints }),
  })
  const releaseTogether = createReleaseTogether()
  const upgrades = new PendingUpgrades()
  const handler =
    (operator: string | undefined) =>
    (request: Request, env: unknown): Response | Promise<Response> => {
      // An upgrade is accepted by this very object.
      const connection: Connection = operator === undefined ? (env as Connection) : Object.assign(env as Connection, { operator })
      const response = fetch(request, connection)
      return response instanceof Promise ? response.then(releaseTogether) : response
    }
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
      const handle = handler(operator)
      const onAsked = (transport: Duplex): void => upgrades.add(transport)
      const onGranted = (transport: Duplex): void => upgrades.end(transport)
      if (streams) serveUpgrades(server, { fetch: handle, onAsked, onGranted })
      const listener = getRequestListener(handle, { errorHandler, overrideGlobalObjects: false }) as RequestListener
      if (operator !== undefined) return listener
      return (incoming, outgoing) => {
        if (!serveDirectly(incoming, outgoing)) listener(incoming, outgoing)
      }
    },
    endStreams: (reason) => streams?.closeAll(reason),
  }
}

/**
 * Ends the connections whose upgrades were refused, with one timer for all. A timer of each socket stays in its memory after the upgrade,
 * with its listener: 0.4 KiB for each subscriber by WebSocket.
 */
class PendingUpgrades {
  #newer = new Set<Duplex>()
  #older = new Set<Duplex>()
  #timer: NodeJS.Timeout | undefined

  add(transport: Duplex): void {
    this.#newer.add(transport)
    this.#timer ??= setInterval(() => this.#endOlder(), REFUSED_UPGRADE_MS / 2).unref()
  }

  /** Call it when the upgrade was granted. */
  end(transport: Duplex): void {
    this.#newer.delete(transport)
    this.#older.delete(transport)
  }

  #endOlder(): void {
    for (const transport of this.#older) transport.destroy()
    this.#older = this.#newer
    this.#newer = new Set()
    if (this.#older.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

/**
 * Lets answers that are ready in one tick of the event loop leave together, at its end. Waking a sleeping client is the most
 * expensive part of a small answer, and a client that the first answer woke is still awake for the others. On a busy machine, a turn took
 * 476 instead of 512 µs of processor time at 64 connections; at 1 and at 16, no difference was found.
 */
function createReleaseTogether(): <Value>(value: Value) => Promise<Value> {
  let waiting: (() => void)[] = []
  const release = (): void => {
    const ready = waiting
    waiting = []
    for (const resolve of ready) resolve()
  }
  return (value) =>
    new Promise((resolve) => {
      if (waiting.push(() => resolve(value)) === 1) setImmediate(release)
    })
}

/** The HTTP application of one snapshot. Hono serves every route; this file shows all of them, and the middleware before them. */

import type { IncomingMessage } from 'node:http'
import type { Runtime, StubRoute } from '@sluice/runtime'
import { AppError, defineRoute, type Route } from '@sluice/sdk'
import { Hono } from 'hono'
import * as v from 'valibot'
import { openApiDocument } from '../answers/openapi.ts'
import { ConnectedPeers, clientPeer } from '../middleware/client-peer.ts'
import { EVERY_PATH, observe } from '../middleware/observe.ts'
import { catchThrownValues, createProblemHandler } from '../middleware/problems.ts'
import type { DirectRoute, Endpoint, EndpointDoc, HttpContext, HttpEnv, Step } from '../request/context.ts'
import { refusal } from '../request/problem.ts'
import { isUsualHost } from '../request/usual-host.ts'
import { healthEndpoint, metricsEndpoint, readyEndpoint } from '../routes/health.ts'
import { ownRoutes } from '../routes/own-routes.ts'
import { pairEndpoint } from '../routes/pair.ts'
import { routeEndpoint } from '../routes/route.ts'
import { firstContactStep, triggerSteps } from '../routes/triggers.ts'
import { webhookEndpoint } from '../routes/webhook.ts'
import { channelEndpoints } from '../routes/webhooks.ts'
import type { AppParts, DaemonParts } from './app-parts.ts'

export type App = Hono<HttpEnv>

/** The application of one snapshot. */
export interface ServedApp {
  readonly app: App
  /** Returns the direct form of the route of a request, if it has one. An unusual `Host` is left to Node's adaptor, which judges it. */
  directRoute(incoming: IncomingMessage): DirectRoute | undefined
}

/** Returns a function that gives the application of the snapshot in force. The first request after a reload makes a new one. */
export function createApps(parts: DaemonParts): () => ServedApp {
  const { runtime } = parts
  const make = (): ServedApp => createApp({ ...parts, snapshot: runtime.snapshot() })
  let served: ServedApp | undefined = make()
  runtime.onSnapshot(() => {
    served = undefined
  })
  return () => (served ??= make())
}

/** A new snapshot needs a new application. */
export function createApp(given: Omit<AppParts, 'peers'>): ServedApp {
  const { runtime, snapshot } = given
  const parts: AppParts = { ...given, peers: new ConnectedPeers(snapshot.gateway, given.forwarding) }
  const app: App = new Hono()
  const routes = new RouteTable(app, runtime)

  const handleProblem = createProblemHandler(runtime)
  app.onError(handleProblem)
  app.notFound((c) => nothingHere(app, c, runtime))

  if (snapshot.observers.length > 0) app.use(observe(snapshot, runtime.clock))
  app.use(catchThrownValues(handleProblem))

  // Probes come often and are the same for every client.
  routes.add(healthEndpoint(runtime))
  routes.add(readyEndpoint(runtime))

  app.use(clientPeer(parts.peers))

  routes.add(metricsEndpoint(parts))
  routes.add(pairEndpoint(parts))
  routes.add(webhookEndpoint(parts))
  for (const endpoint of parts.streams?.(parts) ?? []) routes.add(endpoint)
  for (const channel of snapshot.channels) {
    for (const endpoint of channelEndpoints(channel, parts)) routes.add(endpoint)
  }
  for (const route of [...ownRoutes(parts), documentRoute(routes.docs, parts)]) routes.add(routeEndpoint(route, parts))
  // Before the routes of features, because the page of the dashboard answers every other `GET`.
  app.on('GET', ['*'], firstContactStep(parts))
  for (const route of snapshot.routes) routes.add(routeEndpoint(route, parts))
  for (const stub of snapshot.stubs) routes.addStub(stub)

  app.on('POST', ['*'], ...triggerSteps(parts))
  return {
    app,
    directRoute: ({ method, url = '', headers }) =>
      method === 'POST' && isUsualHost(headers.host) ? routes.direct.get(url.split('?', 1)[0] ?? '') : undefined,
  }
}

/** Adds routes to an application and remembers them for the OpenAPI document. The first route of a method and path wins. */
class RouteTable {
  readonly docs: EndpointDoc[] = []
  /** The direct forms of `POST` routes, by path. */
  readonly direct = new Map<string, DirectRoute>()
  readonly #app: App
  readonly #runtime: Runtime
  readonly #taken = new Set<string>()

  constructor(app: App, runtime: Runtime) {
    this.#app = app
    this.#runtime = runtime
  }

  add({ doc, steps, direct }: Endpoint): void {
    if (this.#serve(doc.method, doc.path, steps)) {
      this.docs.push(doc)
      if (direct && doc.method === 'POST') this.direct.set(doc.path, direct)
    } else this.#runtime.log.error('two features claim one route: the second one is not served', { route: `${doc.method} ${doc.path}` })
  }

  /** Answers for a feature that this daemon does not offer now, unless a feature serves the path. */
  addStub({ method, path, code, detail, fields }: StubRoute): void {
    this.#serve(method, path, [async () => refusal(new AppError(code, detail, fields ? { fields } : {}))])
  }

  #serve(method: string, path: string, steps: readonly Step[]): boolean {
    const name = `${method} ${path}`
    if (this.#taken.has(name)) return false
    this.#taken.add(name)
    this.#app.on(method, [path], ...steps)
    return true
  }
}

/** Reads `docs` at the first request for the document, when all routes are in it. */
function documentRoute(docs: readonly EndpointDoc[], { runtime, snapshot }: AppParts): Route {
  let document: Promise<object> | undefined
  return defineRoute({
    method: 'GET',
    path: '/api/openapi.json',
    summary: 'This document',
    auth: 'client',
    answers: { 200: { description: 'OpenAPI 3.1', schema: v.looseObject({ openapi: v.string() }) } },
    handle: () => (document ??= openApiDocument(docs, runtime.version, snapshot.gateway.public_url)),
  })
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** 405 with `Allow` for a path that has a route or a trigger under another method, else 404. */
function nothingHere({ router }: App, { req: { method, path } }: HttpContext, runtime: Runtime): Response {
  const hasRoute = (other: string): boolean => router.match(other, path)[0].some(([[, route]]) => route.path !== EVERY_PATH)
  const isTrigger = (other: string): boolean => other === 'POST' && method !== other && runtime.sops()?.matches('webhook', path) === true
  const allowed = METHODS.filter((other) => hasRoute(other) || isTrigger(other))
  if (allowed.length === 0) return refusal(new AppError('not_found', 'There is nothing here'))
  const allow = (allowed.includes('GET') ? [...allowed, 'HEAD'] : allowed).join(', ')
  return refusal(new AppError('method_not_allowed', `${method} is not possible here`), { allow })
}

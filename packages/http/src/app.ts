/** The HTTP application of one generation: every endpoint, every stub, and what answers where there is nothing. */

import type { Clients, Ingress } from '@sluice/delivery'
import type { ForwardingWatch, Live, Runtime, StubRoute } from '@sluice/runtime'
import { AppError, defineRoute, type Route } from '@sluice/sdk'
import { Hono } from 'hono'
import * as v from 'valibot'
import type { Auth } from './auth.ts'
import { channelEndpoints } from './channel-webhook.ts'
import type { Endpoint, EndpointDoc } from './endpoint.ts'
import { frame, type Handler } from './frame.ts'
import { createGate, type Gate, type HttpContext, type HttpEnv } from './gate.ts'
import type { IngressBudget } from './ingress-budget.ts'
import { limitRate } from './limit-rate.ts'
import type { Limits } from './limits.ts'
import { healthEndpoint, metricsEndpoint, readyEndpoint } from './open-endpoints.ts'
import { openApiDocument } from './openapi.ts'
import { pairEndpoint } from './pair-endpoint.ts'
import { problem, refusal } from './problem.ts'
import { approvalRoutes } from './routes/approvals.ts'
import { deliveryRoutes } from './routes/deliveries.ts'
import { deviceRoutes } from './routes/devices.ts'
import { memoryRoutes } from './routes/memories.ts'
import { sessionRoutes } from './routes/sessions.ts'
import { sopRoutes } from './routes/sops.ts'
import { statusRoutes } from './routes/status.ts'
import { turnRoutes } from './routes/turns.ts'
import { routeEndpoint } from './serve-route.ts'
import { webhookEndpoint } from './webhook.ts'
import { createWebhookGuard } from './webhook-guard.ts'
import { triggerPath } from './webhook-sops.ts'

export type App = Hono<HttpEnv>

/** What takes the messages of channels. */
export interface Inlet {
  readonly receive: Ingress['receive']
  /** True: the address is not loopback, and channels without a secret are served on it only if `[gateway]` allows that. */
  readonly demandsProof: boolean
}

export interface AppOptions {
  readonly runtime: Runtime
  readonly auth: Auth
  readonly clients: Clients
  readonly limits: Limits
  readonly budget: IngressBudget
  readonly forwarding: ForwardingWatch
  /** Without it, no channel is served. */
  readonly inlet?: Inlet
  /** The endpoints that stay open: server-sent events and WebSockets. */
  readonly streams?: (gate: Gate) => readonly Endpoint[]
}

/** Reads `runtime.live()` once: make another app for another generation. */
export function createApp(options: AppOptions): App {
  const { runtime, auth, clients, limits, budget, forwarding, inlet, streams } = options
  const { clock, log } = runtime
  const live = runtime.live()
  const framing = { live, clock, log, hide: runtime.hideSecrets }
  const gate = createGate({ config: live.config, auth, clients, forwarding })
  const webhook = { runtime, live, gate, auth, limiter: limits.webhook(live.config) }
  const docs: EndpointDoc[] = []
  const endpoints: Endpoint[] = [
    healthEndpoint(runtime),
    readyEndpoint(runtime),
    metricsEndpoint(live, gate),
    pairEndpoint({ runtime, live, gate, limits }),
    webhookEndpoint(webhook),
    ...(streams?.(gate) ?? []),
    ...(inlet ? live.channels.flatMap((channel) => channelEndpoints(channel, { runtime, live, budget, ...inlet }, gate)) : []),
    ...[...ownRoutes(runtime, live, auth, docs), ...live.routes].map((route) =>
      routeEndpoint(route, gate, { hide: runtime.hideSecrets, limit: limitOf(route, limits, live) }),
    ),
  ]

  const app: App = new Hono()
  const taken = new Set<string>()
  const add = (method: string, path: string, handler: Handler): boolean => {
    if (taken.has(`${method} ${path}`)) return false
    taken.add(`${method} ${path}`)
    app.on(method, path, handler)
    return true
  }
  for (const endpoint of endpoints) {
    const { method, path } = endpoint.doc
    if (add(method, path, frame(path, endpoint.serve, framing))) docs.push(endpoint.doc)
    else log.error('two features claim one route: the second one is not served', { route: `${method} ${path}` })
  }
  for (const stub of live.stubs)
    add(
      stub.method,
      stub.path,
      frame(stub.path, () => refusal(refusalOf(stub)), framing),
    )
  const unrouted = frame('unmatched', (c) => nothingHere(app, c), framing)
  const triggered = frame('trigger', triggerPath(runtime, createWebhookGuard(webhook)), framing)
  // Which paths procedures listen on changes without a new generation.
  app.notFound(async (c) => ((await isTriggered(runtime, c)) ? triggered(c) : unrouted(c)))
  app.onError((error, c) => problem(error, framing, c.req.path))
  return app
}

/** A procedure that was just written may listen on the path: the request waits until it is loaded. */
async function isTriggered({ sops: engine }: Runtime, { req: { method, path } }: HttpContext): Promise<boolean> {
  const sops = engine()
  if (method !== 'POST' || !sops) return false
  if (sops.matches('webhook', path)) return true
  await sops.settled()
  return sops.matches('webhook', path)
}

/** What counts the calls of a route that limits them. */
function limitOf({ method, path, callsPerMinute }: Route, limits: Limits, live: Live): ((address: string) => void) | undefined {
  if (callsPerMinute === undefined) return undefined
  const limiter = limits.route({ method, path, callsPerMinute }, live.config)
  return (address) => limitRate(limiter, address, path, live)
}

/** `docs` is read when the document is asked for, and holds everything that is served by then. */
function ownRoutes(runtime: Runtime, live: Live, auth: Auth, docs: readonly EndpointDoc[]): Route[] {
  let document: Promise<object> | undefined
  const openApi = defineRoute({
    method: 'GET',
    path: '/api/openapi.json',
    summary: 'This document',
    auth: 'client',
    answers: { 200: { description: 'OpenAPI 3.1', schema: v.looseObject({ openapi: v.string() }) } },
    handle: () => (document ??= openApiDocument(docs, runtime.version, live.config.public_url)),
  })
  return [
    ...statusRoutes(runtime, live),
    ...sessionRoutes(runtime),
    ...memoryRoutes(runtime),
    ...turnRoutes(runtime),
    ...deliveryRoutes(runtime),
    ...approvalRoutes(runtime),
    ...sopRoutes(runtime),
    ...deviceRoutes(runtime, live, auth),
    openApi,
  ]
}

const refusalOf = ({ code, detail, fields }: StubRoute): AppError => new AppError(code, detail, fields ? { fields } : {})

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** 405 with `Allow` for a path that is known under another method, else 404. */
function nothingHere({ router }: App, { req: { method, path } }: HttpContext): Response {
  const allowed = METHODS.filter((other) => router.match(other, path)[0].length > 0)
  if (allowed.length === 0) return refusal(new AppError('not_found', 'There is nothing here'))
  const allow = (allowed.includes('GET') ? [...allowed, 'HEAD'] : allowed).join(', ')
  return refusal(new AppError('method_not_allowed', `${method} is not possible here`), { allow })
}

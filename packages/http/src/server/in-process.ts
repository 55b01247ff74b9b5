/**
 * Serves the routes of the API without HTTP: for the command line where no daemon runs, whose one caller is the operator, and for
 * routes of features that call the API. Node's `Request` and `Response` take longer to load than a command takes, so they are used
 * only by the routes that stream.
 */

import { newTrace } from '@sluice/agent'
import type { Clients } from '@sluice/delivery'
import type { Runtime } from '@sluice/runtime'
import { type ApiCall, AppError, type Route, type RouteRequest } from '@sluice/sdk'
import { Download } from '../answers/download.ts'
import { createAuth } from '../auth/auth.ts'
import { needsOperator } from '../middleware/authenticate.ts'
import { type ApiParts, ownRoutes } from '../routes/own-routes.ts'
import { validate } from '../routes/validate.ts'

/** The caller of a route, as `authenticate` would admit it. */
export type ApiCaller = Pick<RouteRequest, 'client' | 'device' | 'by' | 'onControlSocket' | 'role'>

/**
 * Returns a function that serves a request: it resolves to the JSON value of the answer, or to a `Response` of a route that
 * streams, and rejects with the error of the route. `operator` is `cli:<user>`.
 */
export function serveInProcess(runtime: Runtime, clients: Clients, operator: string): (request: ApiCall) => Promise<unknown> {
  const call = apiCalls({ runtime, snapshot: runtime.snapshot(), auth: createAuth(runtime) })
  const connection = {}
  return (request) =>
    call(request, { client: clients.of(connection, null), device: null, by: operator, onControlSocket: true, role: 'operator' })
}

/** Returns a function that serves the requests of a caller that was admitted before. It checks the role that a route needs. */
export function apiCalls(parts: ApiParts): (request: ApiCall, caller: ApiCaller) => Promise<unknown> {
  const routes = ownRoutes(parts)
  return async ({ method, path, body, headers, signal = new AbortController().signal }, caller) => {
    const url = new URL(path, 'http://localhost')
    const { route, params } = findRoute(routes, method, url.pathname)
    if (route.auth === 'operator' && caller.role !== 'operator') throw needsOperator()
    const { client, device, by, onControlSocket, role } = caller
    const text = body === undefined ? '' : JSON.stringify(body)
    const request: RouteRequest = {
      client,
      device,
      by,
      onControlSocket,
      role,
      params,
      url,
      query: route.query ? validate(route.query, Object.fromEntries(url.searchParams), 'query') : {},
      body: route.body && validate(route.body, text === '' ? undefined : JSON.parse(text), 'body'),
      raw: Buffer.from(text),
      signal,
      trace: newTrace(undefined),
      browserSession: NO_BROWSER,
      onRevoked: () => () => {},
      api: (inner) => apiCalls(parts)(inner, caller),
      get headers() {
        return new Headers(headers)
      },
    }
    const answer = await route.handle(request)
    if (answer instanceof Download) return (await answer.open()).response
    return isResponse(answer) ? answer : parts.runtime.hideSecrets(answer ?? null)
  }
}

const check = (): never => {
  throw new AppError('forbidden', 'Only a page of this daemon has a session')
}
const noBrowser = async (): Promise<never> => check()
const NO_BROWSER: RouteRequest['browserSession'] = { check, begin: noBrowser, renew: noBrowser, end: noBrowser }

/** True for a `Response`; does not load its class. */
export const isResponse = (answer: unknown): answer is Response =>
  typeof answer === 'object' && answer !== null && 'arrayBuffer' in answer && 'status' in answer

/** Returns the first route of the method whose path matches, as the server does. Throws `not_found` if no route matches. */
function findRoute(routes: readonly Route[], method: string, pathname: string) {
  const segments = pathname.split('/').map(decodeURIComponent)
  for (const route of routes) {
    const names = route.path.split('/')
    const isMatch = names.length === segments.length && names.every((name, index) => name.startsWith(':') || name === segments[index])
    if (!isMatch || route.method !== method) continue
    const params = names.flatMap((name, index) => (name.startsWith(':') ? [[name.slice(1), segments[index] ?? '']] : []))
    return { route, params: Object.fromEntries(params) as Readonly<Record<string, string>> }
  }
  throw new AppError('not_found', 'There is nothing here')
}

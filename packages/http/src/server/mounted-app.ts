/** The API as one Hono application, which a program mounts under a path of its own. */
import type { HttpBindings } from '@hono/node-server'
import { type Context, Hono } from 'hono'
import { routePath } from 'hono/route'
import type { Connection } from '../request/context.ts'

/** Serves every path by `fetch`. The path that the application is mounted under may have parameters. */
export function createMountedApp(fetch: (request: Request, connection: Connection) => Promise<Response>): Hono {
  const app = new Hono()
  app.all('*', (c: Context) => {
    const basePath = mountedUnder(c)
    // Nothing else of the environment is taken over: a member `operator` would make every caller the operator.
    const { incoming, outgoing } = (c.env ?? {}) as Partial<HttpBindings>
    const connection: Connection = { ...(incoming && { incoming }), ...(outgoing && { outgoing }), basePath }
    return fetch(basePath === '' ? c.req.raw : below(basePath, c.req.raw, incoming !== undefined), connection)
  })
  return app
}

/** The part of the request's path before the application's own: it has as many segments as the pattern before the star. */
function mountedUnder(c: Context): string {
  const segments = routePath(c)
    .replace(/\/?\*$/, '')
    .split('/').length
  return new URL(c.req.url).pathname.split('/').slice(0, segments).join('/')
}

/** The same request without the path. The body of a request that has a socket is read from there. */
function below(basePath: string, request: Request, hasSocket: boolean): Request {
  const url = new URL(request.url)
  url.pathname = url.pathname.slice(basePath.length) || '/'
  const { method, headers, signal } = request
  return new Request(url, { method, headers, signal, ...(!hasSocket && request.body && { body: request.body, duplex: 'half' }) })
}

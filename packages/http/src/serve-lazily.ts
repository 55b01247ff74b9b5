/** Serves before the application is loaded: `GET /health` and `GET /ready` at once, and anything else as soon as it is. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Application, ApplicationOptions } from './application.ts'
import { healthBody, readiness } from './open-endpoints.ts'
import { JSON_HEADERS } from './security-headers.ts'

/** Returns what loads the application now; before that, the first request that needs it does. */
export function serveLazily(server: Server, options: ApplicationOptions): () => Promise<Application> {
  let loading: Promise<Application> | undefined

  const load = (): Promise<Application> => {
    loading ??= Promise.all([import('./application.ts'), options.ready]).then(([{ attachApplication }]) => {
      server.off('request', onRequest).off('upgrade', onUpgrade)
      const application = attachApplication(server, options)
      server.on('request', application.listener)
      return application
    })
    return loading
  }
  const onRequest = (incoming: IncomingMessage, outgoing: ServerResponse & { req: IncomingMessage }): void => {
    if (isFor('/health', incoming)) answer(incoming, outgoing, { status: 200, body: healthBody(options.runtime) })
    else if (isFor('/ready', incoming)) void readiness(options.runtime).then((ready) => answer(incoming, outgoing, ready))
    else void load().then(({ listener }) => listener(incoming, outgoing))
  }
  const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    socket.on('error', () => socket.destroy())
    void load().then(() => server.emit('upgrade', request, socket, head))
  }
  server.on('request', onRequest).on('upgrade', onUpgrade)
  return load
}

/** A host as clients write it; any other is for the application to refuse. */
const HOST = /^[\w.-]+(?::\d+)?$|^\[[\da-fA-F:]+\](?::\d+)?$/

const isFor = (path: string, { method, url, headers }: IncomingMessage): boolean =>
  url === path && (method === 'GET' || method === 'HEAD') && HOST.test(headers.host ?? '')

function answer(
  { method }: IncomingMessage,
  outgoing: ServerResponse,
  { status, body }: { readonly status: number; readonly body: string },
): void {
  outgoing.writeHead(status, { ...JSON_HEADERS, 'content-length': Buffer.byteLength(body) })
  outgoing.end(method === 'HEAD' ? undefined : body)
}

/** Serves requests before the application is loaded: probes at once, every other request once the application is there. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { JSON_HEADERS } from '../request/respond.ts'
import { isUsualHost } from '../request/usual-host.ts'
import { healthBody, readiness } from '../routes/health.ts'
import type { Application, ServerParts } from './server.ts'

/** Answers `GET /health` and `GET /ready` at once; every other request loads the application and waits for it. */
export class ApplicationLoader {
  readonly #parts: ServerParts
  readonly #ready: Promise<unknown> | undefined
  /** Attach the application to the servers that wait for it. */
  readonly #attach: ((application: Application) => void)[] = []
  #loading: Promise<Application> | undefined

  constructor(parts: ServerParts, ready: Promise<unknown> | undefined) {
    this.#parts = parts
    this.#ready = ready
  }

  /** Serves a server, whose peers are all `operator` if there is one. */
  serve(server: Server, operator: string | undefined): void {
    const onRequest = (incoming: IncomingMessage, outgoing: ServerResponse & { req: IncomingMessage }): void => {
      const { runtime } = this.#parts
      if (isProbe('/health', incoming)) answerProbe(incoming, outgoing, { status: 200, body: healthBody(runtime) })
      else if (isProbe('/ready', incoming)) void readiness(runtime).then((ready) => answerProbe(incoming, outgoing, ready))
      else void this.load().then(() => server.emit('request', incoming, outgoing))
    }
    const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
      socket.on('error', () => socket.destroy())
      void this.load().then(() => server.emit('upgrade', request, socket, head))
    }
    server.on('request', onRequest).on('upgrade', onUpgrade)
    this.#attach.push((application) => {
      server.off('request', onRequest).off('upgrade', onUpgrade)
      server.on('request', application.serve(server, operator))
    })
  }

  /** Resolves once the application serves the requests of all servers. Loads it only once. */
  load(): Promise<Application> {
    this.#loading ??= this.#load()
    return this.#loading
  }

  async #load(): Promise<Application> {
    const [{ createApplication }] = await Promise.all([import('./server.ts'), this.#ready])
    const application = createApplication(this.#parts)
    for (const attach of this.#attach) attach(application)
    return application
  }
}

const isProbe = (path: string, { method, url, headers }: IncomingMessage): boolean =>
  url === path && (method === 'GET' || method === 'HEAD') && isUsualHost(headers.host)

function answerProbe(
  { method }: IncomingMessage,
  outgoing: ServerResponse,
  { status, body }: { readonly status: number; readonly body: string },
): void {
  outgoing.writeHead(status, { ...JSON_HEADERS, 'content-length': Buffer.byteLength(body) })
  outgoing.end(method === 'HEAD' ? undefined : body)
}

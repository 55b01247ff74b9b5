/** Requests and upgrades that a server of the embedding program passes on to the API. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { AppError } from '@sluice/sdk'
import type { Connection } from '../request/context.ts'
import { refusal } from '../request/problem.ts'
import type { Application } from './server.ts'

/** The folder of the paths of all WebSockets. */
const SOCKETS = '/ws/'
const BUSY_LOOK_MS = 20

export class Mounted {
  /** Never listens: its listeners, which `HttpSide` attaches, serve what other servers pass on. */
  readonly server = createServer()
  readonly #load: () => Promise<Application>
  /** True once a request came: the address that the other server is reached at is not known here. */
  isUsed = false
  /** The number of requests without an answer. */
  #running = 0
  #isClosed = false

  constructor(load: () => Promise<Application>) {
    this.#load = load
  }

  /** Resolves to the answer; a failure is an answer, too. */
  readonly fetch = async (request: Request, connection: Connection): Promise<Response> => {
    if (this.#isClosed) return stopped()
    this.isUsed = true
    this.#running++
    try {
      const application = await this.#load()
      return await application.fetch(request, connection)
    } finally {
      this.#running--
    }
  }

  readonly handleRequest = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    if (this.#isClosed) {
      const answer = stopped()
      outgoing.writeHead(answer.status, Object.fromEntries(answer.headers))
      void answer.text().then((body) => outgoing.end(body))
      return
    }
    this.isUsed = true
    this.#running++
    outgoing.once('close', () => this.#running--)
    this.server.emit('request', incoming, outgoing)
  }

  /** What precedes the path of a WebSocket is the path that the API is mounted under. */
  readonly handleUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    if (this.#isClosed) {
      socket.end('HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
      return
    }
    const url = request.url ?? '/'
    const start = (url.split('?', 1)[0] ?? '').lastIndexOf(SOCKETS)
    if (start > 0) request.url = url.slice(start)
    this.server.emit('upgrade', request, socket, head)
  }

  /** Refuses from now on, and waits at most `graceMs` for running requests. */
  async close(graceMs: number): Promise<void> {
    this.#isClosed = true
    for (const endMs = performance.now() + graceMs; this.#running > 0 && performance.now() < endMs; )
      await new Promise((resolve) => setTimeout(resolve, BUSY_LOOK_MS))
    this.server.emit('close')
  }
}

const stopped = (): Response => refusal(new AppError('unavailable', 'The daemon has stopped'))

/**
 * The only way out a browser has: an HTTP proxy on a loopback port that checks each host and connects to the very
 * address it checked. Redirects, frames, sockets and workers all come by here, whatever a page does.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { AppError, errorText, type ResolvedAddress } from '@sluice/sdk'
import type { UrlGuard } from '../url-guard.ts'
import { forwardRequest } from './forward-request.ts'
import { Pass } from './pass.ts'
import { joinTunnel } from './tunnel.ts'

const CONNECTIONS_MAX = 512
const HEADERS_MS_MAX = 30_000

export interface Target {
  readonly url: URL
  readonly addresses: readonly ResolvedAddress[]
}

export class EgressProxy {
  readonly #guard: UrlGuard
  readonly #server: Server
  readonly #passes = new Map<string, Pass>()
  /** Tunnels are the server's no more, so it would not end them. */
  readonly #sockets = new Set<Socket>()

  private constructor(guard: UrlGuard, server: Server) {
    this.#guard = guard
    this.#server = server
    server.maxConnections = CONNECTIONS_MAX
    server.headersTimeout = HEADERS_MS_MAX
    // A download takes as long as it takes; a tunnel that is silent is ended by itself.
    server.requestTimeout = 0
    server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
    })
    server.on('request', (request, response) => void this.#onRequest(request, response))
    server.on('connect', (request, socket, head) => void this.#onConnect(request, socket, head))
    server.on('upgrade', (_request, socket) => socket.destroy())
    server.on('clientError', (_error, socket) => socket.destroy())
  }

  static async start(guard: UrlGuard): Promise<EgressProxy> {
    const { createServer } = await import('node:http')
    const proxy = new EgressProxy(guard, createServer())
    const listening = Promise.withResolvers<void>()
    proxy.#server.once('error', listening.reject)
    proxy.#server.listen(0, '127.0.0.1', listening.resolve)
    await listening.promise
    // A browser is a guest of the daemon, never what keeps it.
    proxy.#server.unref()
    return proxy
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  issue(): Pass {
    const pass = new Pass()
    this.#passes.set(pass.username, pass)
    return pass
  }

  revoke(pass: Pass): void {
    this.#passes.delete(pass.username)
  }

  async close(): Promise<void> {
    this.#passes.clear()
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  async #onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const refuse = (status: number, text: string, headers: Record<string, string> = {}) => {
      response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store', ...headers })
      response.end(`Sluice: ${text}\n`)
    }
    const pass = this.#passOf(request)
    if (!pass) return refuse(407, 'a pass is needed', { 'proxy-authenticate': 'Basic realm="Sluice"' })
    const url = URL.parse(request.url ?? '')
    if (url?.protocol !== 'http:') return refuse(400, 'this is no request of a proxy')
    try {
      const addresses = await this.#checked(url, pass)
      forwardRequest({ url, addresses }, { request, response, refuse })
    } catch (error) {
      refuse(error instanceof AppError && error.code === 'forbidden' ? 403 : 502, errorText(error))
    }
  }

  async #onConnect(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on('error', () => socket.destroy())
    const refuse = (status: string, header = '') => void socket.end(`HTTP/1.1 ${status}\r\n${header}content-length: 0\r\n\r\n`)
    const pass = this.#passOf(request)
    if (!pass) return refuse('407 Proxy Authentication Required', 'proxy-authenticate: Basic realm="Sluice"\r\n')
    const url = URL.parse(`http://${request.url}`)
    if (url?.pathname !== '/' || url.username !== '') return refuse('400 Bad Request')
    try {
      const addresses = await this.#checked(url, pass)
      await joinTunnel({ url, addresses }, { socket, head })
    } catch (error) {
      refuse(error instanceof AppError && error.code === 'forbidden' ? '403 Forbidden' : '502 Bad Gateway')
    }
  }

  /** Throws for what is refused, having told the pass. */
  async #checked({ hostname }: URL, pass: Pass): Promise<readonly ResolvedAddress[]> {
    try {
      return await this.#guard.addresses(hostname)
    } catch (error) {
      if (error instanceof AppError && error.code === 'forbidden') pass.refuse({ host: hostname, why: error.message })
      throw error
    }
  }

  #passOf({ headers }: IncomingMessage): Pass | undefined {
    const authorization = headers['proxy-authorization'] ?? ''
    const username =
      Buffer.from(authorization.replace(/^Basic /, ''), 'base64')
        .toString()
        .split(':')[0] ?? ''
    const pass = this.#passes.get(username)
    if (!pass?.opens(authorization)) return undefined
    pass.use()
    return pass
  }
}

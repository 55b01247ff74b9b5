/**
 * The browser's only access to the network: an HTTP proxy on a loopback port that checks each host and connects to the address
 * it checked. Every redirect, frame, WebSocket and worker of a page goes through it.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { AppError, errorText, type ResolvedAddress } from '@sluice/sdk'
import type { UrlGuard } from '../url-guard.ts'
import { forwardRequest, openTunnel } from './forward.ts'
import { Pass } from './pass.ts'

const CONNECTIONS_MAX = 512
const HEADERS_MS_MAX = 30_000
const CHALLENGE = 'Basic realm="Sluice"'

export class EgressProxy {
  readonly #guard: UrlGuard
  readonly #server: Server
  readonly #passes = new Map<string, Pass>()
  /** All open sockets. The server forgets a socket that became a tunnel, so `close` ends these itself. */
  readonly #sockets = new Set<Socket>()

  private constructor(guard: UrlGuard, server: Server) {
    this.#guard = guard
    this.#server = server
    server.maxConnections = CONNECTIONS_MAX
    server.headersTimeout = HEADERS_MS_MAX
    // A transfer may take any time; a request or tunnel that stalls has its own timeout.
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

  /** Listens on a free port of 127.0.0.1. */
  static async start(guard: UrlGuard): Promise<EgressProxy> {
    const { createServer } = await import('node:http')
    const proxy = new EgressProxy(guard, createServer())
    const listening = Promise.withResolvers<void>()
    proxy.#server.once('error', listening.reject)
    proxy.#server.listen(0, '127.0.0.1', listening.resolve)
    await listening.promise
    // The proxy must not keep the daemon's process alive.
    proxy.#server.unref()
    return proxy
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Creates the credentials of one client, which are valid until `revoke` or `close`. */
  issue(): Pass {
    const pass = new Pass()
    this.#passes.set(pass.username, pass)
    return pass
  }

  revoke(pass: Pass): void {
    this.#passes.delete(pass.username)
  }

  /** Ends all connections. May be called twice. */
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
    const pass = this.#authenticate(request)
    if (!pass) return refuse(407, 'Proxy authentication is required', { 'proxy-authenticate': CHALLENGE })
    const url = URL.parse(request.url ?? '')
    if (url?.protocol !== 'http:') return refuse(400, 'This is not a proxy request')
    try {
      const addresses = await this.#checkedAddresses(url, pass)
      forwardRequest({ url, addresses }, request, response, refuse)
    } catch (error) {
      refuse(isForbidden(error) ? 403 : 502, errorText(error))
    }
  }

  async #onConnect(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    socket.on('error', () => socket.destroy())
    const refuse = (status: string, header = '') => void socket.end(`HTTP/1.1 ${status}\r\n${header}content-length: 0\r\n\r\n`)
    const pass = this.#authenticate(request)
    if (!pass) return refuse('407 Proxy Authentication Required', `proxy-authenticate: ${CHALLENGE}\r\n`)
    const url = URL.parse(`http://${request.url}`)
    if (url?.pathname !== '/' || url.username !== '') return refuse('400 Bad Request')
    try {
      const addresses = await this.#checkedAddresses(url, pass)
      await openTunnel({ url, addresses }, socket, head)
    } catch (error) {
      refuse(isForbidden(error) ? '403 Forbidden' : '502 Bad Gateway')
    }
  }

  /** Throws for a host that may not be reached, after recording the refusal in the pass. */
  async #checkedAddresses({ hostname }: URL, pass: Pass): Promise<readonly ResolvedAddress[]> {
    try {
      return await this.#guard.addresses(hostname)
    } catch (error) {
      if (isForbidden(error)) pass.refuse({ host: hostname, reason: error.message })
      throw error
    }
  }

  #authenticate({ headers }: IncomingMessage): Pass | undefined {
    const authorization = headers['proxy-authorization'] ?? ''
    const credentials = Buffer.from(authorization.replace(/^Basic /, ''), 'base64').toString()
    const pass = this.#passes.get(credentials.split(':')[0] ?? '')
    if (!pass?.matches(authorization)) return undefined
    pass.use()
    return pass
  }
}

const isForbidden = (error: unknown): error is AppError => error instanceof AppError && error.code === 'forbidden'

/**
 * The WebSocket of the fake server, with the rules of `web_conn.go`, `web_hub.go` and `websocket_router.go` of the server's source: numbered
 * events, connections that are kept for a while after they broke, and what is replayed to a client that resumes one.
 */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { idOf } from './fake-posts.ts'

interface Event {
  readonly event: string
  readonly data: object
  readonly broadcast: object
}

/** A connection of a user, which outlives its socket. */
interface WebConn {
  id: string
  readonly token: string
  socket: WebSocket | undefined
  /** The number of the next event. */
  seq: number
  /** The last events that were written to a socket. */
  dead: { readonly seq: number; readonly frame: string }[]
  /** Events that were not written, because no socket was open. */
  queue: Event[]
}

const DEAD_MAX = 128
const QUEUE_MAX = 256
/** The server closes a connection that is not authenticated by then. */
const AUTH_MS = 5000
const SOCKETS_MAX = 20

const NOT_AUTHENTICATED = { id: 'api.web_socket_router.not_authenticated.app_error', message: 'WebSocket connection is not authenticated.' }

export class MattermostSockets {
  readonly #server = new WebSocketServer({ noServer: true, autoPong: true })
  /** Returns the user of a token, or undefined for an invalid one. */
  readonly #userOf: (token: string) => string | undefined
  readonly #kept = new Map<string, WebConn>()
  readonly #sockets = new Set<WebSocket>()
  readonly #muted = new Set<WebSocket>()
  #connections = 0
  /** How often a connection was authenticated, and how often one was resumed. */
  opened = 0
  resumed = 0
  /** Forgets connections that broke, as the server does after some minutes and when it restarts. */
  forgets = false
  /** Removes the header that authenticates, as a proxy may do. */
  losesHeader = false

  constructor(userOf: (token: string) => string | undefined) {
    this.#userOf = userOf
  }

  get open(): number {
    return [...this.#kept.values()].filter(({ socket }) => socket !== undefined).length
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const url = new URL(request.url ?? '/', 'http://fake')
    if (url.pathname !== '/api/v4/websocket' || this.#sockets.size >= SOCKETS_MAX) {
      socket.end('HTTP/1.1 404 Not Found\r\nconnection: close\r\n\r\n')
      return
    }
    const header = this.losesHeader ? '' : (request.headers.authorization ?? '')
    const token = header.replace(/^Bearer /i, '')
    this.#server.handleUpgrade(request, socket, head, (opened) => this.#welcome(opened, token, url.searchParams))
  }

  /** Sends an event to each connection, and keeps it for broken ones. */
  emit(event: string, data: object, broadcast: object = {}): void {
    for (const conn of [...this.#kept.values()]) {
      // The server sends nothing more over a connection whose token was revoked, and keeps it open.
      if (!this.#userOf(conn.token)) continue
      if (conn.socket) this.#write(conn, { event, data, broadcast })
      else if (conn.queue.length < QUEUE_MAX) conn.queue.push({ event, data, broadcast })
      else this.#kept.delete(conn.id)
    }
  }

  /** Loses the next event, which a client notices by its number. */
  skipEvent(): void {
    for (const conn of this.#kept.values()) conn.seq += 1
  }

  /** Breaks the sockets, or keeps them open without a frame in either direction. */
  cut(how: 'close' | 'reset' | 'mute'): void {
    for (const socket of this.#sockets) {
      if (how === 'close') socket.close(1000)
      else if (how === 'reset') socket.terminate()
      else this.#muted.add(socket)
    }
  }

  close(): void {
    for (const socket of this.#sockets) socket.terminate()
    this.#server.close()
  }

  #welcome(socket: WebSocket, token: string, query: URLSearchParams): void {
    this.#sockets.add(socket)
    let conn: WebConn | undefined
    const timer = setTimeout(() => socket.terminate(), AUTH_MS).unref()
    const register = (registered: WebConn): void => {
      clearTimeout(timer)
      conn = registered
    }
    socket.on('message', (data) => {
      if (this.#muted.has(socket)) return
      const { seq, action, data: args } = JSON.parse(String(data)) as { seq: number; action: string; data?: { token?: string } }
      if (action === 'authentication_challenge') {
        if (conn) return
        if (!this.#userOf(args?.token ?? '')) return socket.terminate()
        register(this.#begin(socket, args?.token ?? ''))
        return this.#answer(socket, { status: 'OK', seq_reply: seq })
      }
      // The answer to a connection that is not registered gets lost.
      if (!conn) return
      if (!this.#userOf(conn.token)) return this.#answer(socket, { status: 'FAIL', seq_reply: seq, error: NOT_AUTHENTICATED })
      if (action === 'ping') this.#answer(socket, { status: 'OK', data: { text: 'pong', version: '11.9.0' }, seq_reply: seq })
    })
    socket.on('close', () => {
      clearTimeout(timer)
      this.#sockets.delete(socket)
      if (conn?.socket === socket) conn.socket = undefined
    })
    if (this.#userOf(token)) register(this.#resume(socket, token, query) ?? this.#begin(socket, token))
  }

  #answer(socket: WebSocket, answer: object): void {
    socket.send(JSON.stringify(answer))
  }

  #begin(socket: WebSocket, token: string): WebConn {
    const conn: WebConn = { id: this.#nextId(), token, socket, seq: 0, dead: [], queue: [] }
    this.#kept.set(conn.id, conn)
    this.#hello(conn)
    return conn
  }

  /** Undefined if the connection is unknown, or the server has not noticed yet that its socket broke. */
  #resume(socket: WebSocket, token: string, query: URLSearchParams): WebConn | undefined {
    const conn = this.#kept.get(query.get('connection_id') ?? '')
    const sequence = query.get('sequence_number') ?? ''
    if (query.get('connection_id') && !/^\d+$/.test(sequence)) socket.terminate()
    if (!conn || conn.socket || conn.token !== token || this.forgets) return undefined
    const next = Number(sequence)
    const from = conn.dead.findIndex(({ seq }) => seq === next)
    conn.socket = socket
    const lost = from < 0 && conn.dead.at(-1)?.seq !== next - 1
    if (lost) {
      this.#kept.delete(conn.id)
      Object.assign(conn, { id: this.#nextId(), seq: 0, dead: [] })
      this.#kept.set(conn.id, conn)
      this.#hello(conn)
    } else {
      this.resumed += 1
      this.opened += 1
      conn.seq = next
      for (const { frame } of from < 0 ? [] : conn.dead.slice(from)) {
        socket.send(frame)
        conn.seq += 1
      }
    }
    for (const event of conn.queue.splice(0)) this.#write(conn, event)
    return conn
  }

  #hello(conn: WebConn): void {
    this.opened += 1
    this.#write(conn, {
      event: 'hello',
      data: { connection_id: conn.id, server_version: '11.9.0.fake.hash.false', server_hostname: 'fake' },
      broadcast: { user_id: this.#userOf(conn.token) },
    })
  }

  #write(conn: WebConn, event: Event): void {
    const frame = JSON.stringify({ ...event, seq: conn.seq })
    conn.dead.push({ seq: conn.seq, frame })
    if (conn.dead.length > DEAD_MAX) conn.dead.shift()
    conn.seq += 1
    if (conn.socket && !this.#muted.has(conn.socket)) conn.socket.send(frame)
  }

  #nextId(): string {
    this.#connections += 1
    return idOf('w', this.#connections)
  }
}

/**
 * The gateway of the fake: sessions, heartbeats, and events that are repeated to a resumed session. Operations and close codes follow
 * https://bot.q.qq.com/wiki/develop/api-v2/dev-prepare/interface-framework/event-emit.html and its page of error codes.
 */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'

const KNOWN_INTENTS = (1 << 25) | (1 << 26) | (1 << 30) | (1 << 12) | (1 << 9) | (1 << 1) | 1

interface Session {
  readonly id: string
  seq: number
  /** The events with their numbers. */
  readonly events: { readonly s: number; readonly frame: string; readonly untilMs: number }[]
  socket: WebSocket | undefined
}

export interface FakeGatewayOptions {
  nowMs(): number
  isToken(authorization: string): boolean
  /** How long an event is kept for a resumed session. */
  readonly keepMs: number
  readonly heartbeatMs: number
}

export class FakeGateway {
  opened = 0
  identified = 0
  resumed = 0
  heartbeats = 0
  /** The intents of the last connection. */
  intents = 0
  /** The events that the bot may not get. */
  forbiddenIntents = 0
  /** Called after a session began. */
  onReady: () => void = () => undefined
  readonly #options: FakeGatewayOptions
  readonly #server = new WebSocketServer({ noServer: true, autoPong: false })
  readonly #sockets = new Set<WebSocket>()
  readonly #muted = new Set<WebSocket>()
  readonly #sessions = new Map<string, Session>()

  constructor(options: FakeGatewayOptions) {
    this.#options = options
  }

  get open(): number {
    return this.#sockets.size
  }

  get ready(): number {
    return [...this.#sessions.values()].filter(({ socket }) => socket !== undefined).length
  }

  readonly upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    if (request.url !== '/websocket/') return void socket.end('HTTP/1.1 404 Not Found\r\nconnection: close\r\n\r\n')
    this.#server.handleUpgrade(request, socket, head, (opened) => this.#welcome(opened))
  }

  /** Gives an event to every session. */
  dispatch(type: string, data: object): void {
    for (const session of this.#sessions.values()) {
      session.seq += 1
      const frame = JSON.stringify({ op: 0, s: session.seq, t: type, id: `${type}:${randomUUID()}`, d: data })
      session.events.push({ s: session.seq, frame, untilMs: this.#options.nowMs() + this.#options.keepMs })
      if (session.socket && !this.#muted.has(session.socket)) session.socket.send(frame)
    }
  }

  /** Sends a frame as it is. */
  raw(frame: string): void {
    for (const socket of this.#sockets) socket.send(frame)
  }

  /** Asks for another connection, or closes all connections with a code. */
  reconnect(): void {
    this.raw(JSON.stringify({ op: 7 }))
  }
  closeAll(code: number, reason = ''): void {
    for (const socket of this.#sockets) socket.close(code, reason)
  }

  mute(): void {
    for (const socket of this.#sockets) this.#muted.add(socket)
  }

  forgetSessions(): void {
    this.#sessions.clear()
  }

  close(): void {
    for (const socket of this.#sockets) socket.terminate()
    this.#server.close()
  }

  #welcome(socket: WebSocket): void {
    this.#sockets.add(socket)
    this.opened += 1
    socket.on('message', (data) => void (!this.#muted.has(socket) && this.#take(socket, String(data))))
    socket.on('ping', (data) => void (!this.#muted.has(socket) && socket.pong(data)))
    socket.on('close', (code) => {
      this.#sockets.delete(socket)
      for (const session of this.#sessions.values()) {
        if (session.socket !== socket) continue
        session.socket = undefined
        // A client that leaves normally does not come back.
        if (code === 1000) this.#sessions.delete(session.id)
      }
    })
    socket.send(JSON.stringify({ op: 10, d: { heartbeat_interval: this.#options.heartbeatMs } }))
  }

  #take(socket: WebSocket, text: string): void {
    const { op, d } = JSON.parse(text) as { op: number; d: Readonly<Record<string, unknown>> }
    if (op === 1) {
      this.heartbeats += 1
      socket.send('{"op":11}')
    } else if (op === 2 || op === 6) {
      if (!this.#options.isToken(String(d.token))) return void socket.close(4004, 'token invalid')
      if (op === 2) this.#identify(socket, d)
      else this.#resume(socket, d)
    } else socket.close(4001, 'invalid opcode')
  }

  #identify(socket: WebSocket, { intents, shard }: Readonly<Record<string, unknown>>): void {
    if (!Array.isArray(shard) || shard.length !== 2) return void socket.close(4010, 'invalid shard')
    if (typeof intents !== 'number' || (intents & ~KNOWN_INTENTS) !== 0) return void socket.close(4013, 'invalid intents')
    if ((intents & this.forbiddenIntents) !== 0) return void socket.close(4014, 'disallowed intents')
    this.intents = intents
    this.identified += 1
    const session: Session = { id: randomUUID(), seq: 1, events: [], socket }
    this.#sessions.set(session.id, session)
    const user = { id: '6158788878435714165', username: 'sluice', bot: true }
    socket.send(JSON.stringify({ op: 0, s: 1, t: 'READY', d: { version: 1, session_id: session.id, user, shard: [0, 0] } }))
    this.onReady()
  }

  #resume(socket: WebSocket, { session_id, seq }: Readonly<Record<string, unknown>>): void {
    const session = this.#sessions.get(String(session_id))
    if (!session) return void socket.send('{"op":9,"d":false}')
    if (typeof seq !== 'number' || seq > session.seq) return void socket.close(4007, 'seq error')
    this.resumed += 1
    session.socket = socket
    for (const { s, frame, untilMs } of session.events) if (s > seq && this.#options.nowMs() <= untilMs) socket.send(frame)
    session.seq += 1
    socket.send(JSON.stringify({ op: 0, s: session.seq, t: 'RESUMED', d: '' }))
  }
}

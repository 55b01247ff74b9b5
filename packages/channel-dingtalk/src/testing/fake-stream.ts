/**
 * Stream mode of the fake: tickets, connections, and pushes. Written from the protocol at
 * https://open.dingtalk.com/document/direction/stream-mode-protocol-access-description and its supplement in
 * https://github.com/open-dingtalk/developerpedia (docs/learn/stream/protocol.md).
 *
 * Two texts of DingTalk differ about pushes without an acknowledgement: the protocol says that a message of a robot is pushed once, and
 * the Node SDK (`client.d.ts` of dingtalk-stream 2.1.5) that it is pushed again within 60 s. `keepMs` chooses between them.
 */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'

export const MESSAGES = '/v1.0/im/bot/messages/get'
/** A ticket opens one connection, within 90 s. */
const TICKET_MS = 90_000

interface Push {
  readonly data: string
  readonly untilMs: number
  readonly id: string
  via: WebSocket | undefined
}

export interface FakeStreamOptions {
  nowMs(): number
  /** How long a push that was not acknowledged is kept and repeated; 0: it is pushed once, and lost without a connection. */
  readonly keepMs: number
}

export class FakeStream {
  /** Ids of messages that were acknowledged. */
  readonly acknowledged: string[] = []
  /** Answers to pings that repeat their `opaque`. */
  pongs = 0
  opened = 0
  readonly #server = new WebSocketServer({ noServer: true, autoPong: false })
  readonly #options: FakeStreamOptions
  readonly #tickets = new Map<string, number>()
  readonly #sockets = new Set<WebSocket>()
  readonly #muted = new Set<WebSocket>()
  /** Connections that will be closed, which get no further pushes. */
  readonly #leaving = new Set<WebSocket>()
  readonly #pushes = new Map<string, Push>()
  readonly #pings = new Set<string>()

  constructor(options: FakeStreamOptions) {
    this.#options = options
  }

  get open(): number {
    return this.#sockets.size
  }

  ticket(): string {
    const ticket = randomUUID()
    this.#tickets.set(ticket, this.#options.nowMs() + TICKET_MS)
    return ticket
  }

  readonly upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const url = new URL(request.url ?? '/', 'http://fake')
    const ticket = url.searchParams.get('ticket') ?? ''
    const untilMs = this.#tickets.get(ticket) ?? 0
    this.#tickets.delete(ticket)
    if (url.pathname !== '/connect' || this.#options.nowMs() > untilMs) {
      return void socket.end('HTTP/1.1 401 Unauthorized\r\nconnection: close\r\n\r\n')
    }
    this.#server.handleUpgrade(request, socket, head, (opened) => this.#welcome(opened))
  }

  /** Pushes a message of a robot. */
  push(id: string, data: object): void {
    const push: Push = { id, data: JSON.stringify(data), untilMs: this.#options.nowMs() + this.#options.keepMs, via: undefined }
    this.#pushes.set(id, push)
    this.#send(push)
    if (this.#options.keepMs === 0 && !push.via) this.#pushes.delete(id)
  }

  /** Sends a frame of the system to all connections. */
  system(topic: 'ping' | 'disconnect', data: object = {}): void {
    const messageId = randomUUID()
    for (const socket of this.#sockets) {
      if (topic === 'ping') this.#pings.add(JSON.stringify({ messageId, data: JSON.stringify(data) }))
      if (topic === 'disconnect') this.#leaving.add(socket)
      const headers = { topic, messageId, contentType: 'application/json', time: String(this.#options.nowMs()) }
      socket.send(JSON.stringify({ specVersion: '1.0', type: 'SYSTEM', headers, data: JSON.stringify(data) }))
    }
  }

  /** Sends a frame of another kind as it is. */
  raw(frame: string): void {
    for (const socket of this.#sockets) socket.send(frame)
  }

  /** Keeps the connections open, and says nothing more over them. */
  mute(): void {
    for (const socket of this.#sockets) this.#muted.add(socket)
  }

  /** Ends the connections that were asked to end. */
  endLeaving(): void {
    for (const socket of this.#leaving) socket.close(1000)
  }

  /** Pushes again what was not acknowledged in time. */
  repeat(): void {
    for (const push of this.#pushes.values()) this.#send(push)
  }

  /** Forgets the messages that were not acknowledged. */
  forget(): void {
    this.#pushes.clear()
  }

  close(): void {
    for (const socket of this.#sockets) socket.terminate()
    this.#server.close()
  }

  #welcome(socket: WebSocket): void {
    this.#sockets.add(socket)
    this.opened += 1
    socket.on('message', (data) => void (!this.#muted.has(socket) && this.#take(String(data))))
    socket.on('ping', (data) => void (!this.#muted.has(socket) && socket.pong(data)))
    socket.on('close', () => {
      this.#sockets.delete(socket)
      for (const push of [...this.#pushes.values()]) if (push.via === socket) this.#lose(push)
    })
    for (const push of [...this.#pushes.values()]) if (!push.via) this.#send(push)
  }

  #lose(push: Push): void {
    push.via = undefined
    if (this.#options.keepMs === 0) this.#pushes.delete(push.id)
    else this.#send(push)
  }

  #send(push: Push): void {
    if (this.#options.keepMs > 0 && this.#options.nowMs() > push.untilMs) return void this.#pushes.delete(push.id)
    push.via = [...this.#sockets].findLast(
      (socket) => socket.readyState === socket.OPEN && !this.#muted.has(socket) && !this.#leaving.has(socket),
    )
    const headers = {
      appId: 'app-1',
      connectionId: 'c-1',
      contentType: 'application/json',
      messageId: push.id,
      time: String(this.#options.nowMs()),
      topic: MESSAGES,
    }
    push.via?.send(JSON.stringify({ specVersion: '1.0', type: 'CALLBACK', headers, data: push.data }))
  }

  #take(frame: string): void {
    const { code, headers, data } = JSON.parse(frame) as {
      code?: number
      headers?: { messageId?: string; contentType?: string }
      data?: string
    }
    if (code !== 200 || headers?.contentType !== 'application/json' || typeof data !== 'string') return
    JSON.parse(data)
    if (this.#pings.delete(JSON.stringify({ messageId: headers.messageId, data }))) this.pongs += 1
    else if (this.#pushes.delete(headers.messageId ?? '')) this.acknowledged.push(headers.messageId ?? '')
  }
}

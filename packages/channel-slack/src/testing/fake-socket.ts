/** Socket mode of the fake workspace: tickets, connections, and envelopes that are repeated until they are acknowledged. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'

/** The content of an envelope. */
export interface SlackEnvelope {
  readonly type: 'events_api' | 'interactive' | 'slash_commands'
  readonly payload: object
}

/** The socket-mode side of the workspace. */
export interface SlackSocket {
  /** Returns the path for a new connection; it can be used once. */
  ticket(): string
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Sends an envelope as soon as there is a connection. */
  emit(envelope: SlackEnvelope): void
  /** Every envelope sent over a connection, including repeats. */
  readonly delivered: readonly (SlackEnvelope & { readonly id: string; readonly attempt: number })[]
  /** Envelopes that were acknowledged. */
  readonly acknowledged: readonly SlackEnvelope[]
  /** The number of open connections, and the number ever opened. */
  readonly open: number
  readonly opened: number
  /** Asks every client to open a new connection; the old ones keep working. */
  announce(reason: 'warning' | 'refresh_requested' | 'link_disabled'): void
  /** Ends every connection normally or abruptly, or keeps it open without traffic. */
  cut(how: 'close' | 'reset' | 'mute'): void
  /** Sends a frame unchanged over every connection. */
  raw(frame: string): void
  /** Stops sending the hello frame on new connections. */
  hush(): void
  close(): void
}

interface Pending extends SlackEnvelope {
  readonly id: string
  attempt: number
  via: WebSocket | undefined
  timer?: NodeJS.Timeout
}

/** The first attempt and three repeats. */
const ATTEMPTS_MAX = 4
const KEPT_MAX = 100_000
const SOCKETS_MAX = 10

/** Creates it; an envelope is repeated after `ackMs` milliseconds. */
export function createSlackSocket({ ackMs }: { readonly ackMs: number }): SlackSocket {
  const server = new WebSocketServer({ noServer: true, autoPong: false })
  const tickets = new Set<string>()
  const sockets = new Set<WebSocket>()
  const muted = new Set<WebSocket>()
  const pending = new Map<string, Pending>()
  const delivered: SlackSocket['delivered'][number][] = []
  const acknowledged: SlackEnvelope[] = []
  let opened = 0
  let isHushed = false

  const sendOut = (envelope: Pending): void => {
    clearTimeout(envelope.timer)
    envelope.via = [...sockets].findLast((socket) => socket.readyState === socket.OPEN && !muted.has(socket))
    if (!envelope.via) return
    const { id, type, payload, attempt } = envelope
    const retry = attempt > 0 ? { retry_attempt: attempt, retry_reason: 'timeout' } : { retry_attempt: 0, retry_reason: '' }
    envelope.via.send(JSON.stringify({ envelope_id: id, type, payload, accepts_response_payload: type === 'interactive', ...retry }))
    if (delivered.length < KEPT_MAX) delivered.push({ id, type, payload, attempt })
    envelope.timer = setTimeout(() => again(envelope), ackMs).unref()
  }
  const again = (envelope: Pending): void => {
    clearTimeout(envelope.timer)
    envelope.attempt += 1
    if (envelope.attempt < ATTEMPTS_MAX) sendOut(envelope)
    else pending.delete(envelope.id)
  }
  const onFrame = (data: string): void => {
    const { envelope_id: id } = JSON.parse(data) as { envelope_id?: string }
    const envelope = pending.get(id ?? '')
    if (!envelope) return
    clearTimeout(envelope.timer)
    pending.delete(envelope.id)
    acknowledged.push({ type: envelope.type, payload: envelope.payload })
  }
  const welcome = (socket: WebSocket): void => {
    sockets.add(socket)
    opened += 1
    socket.on('message', (data) => {
      if (!muted.has(socket)) onFrame(String(data))
    })
    socket.on('ping', (data) => {
      if (!muted.has(socket)) socket.pong(data)
    })
    socket.on('close', () => {
      sockets.delete(socket)
      for (const envelope of [...pending.values()]) if (envelope.via === socket) again(envelope)
    })
    if (isHushed) return
    socket.send(JSON.stringify({ type: 'hello', num_connections: sockets.size, connection_info: { app_id: 'A0123' } }))
    for (const envelope of [...pending.values()]) if (!envelope.via) sendOut(envelope)
  }
  const all = (act: (socket: WebSocket) => void): void => {
    for (const socket of [...sockets]) act(socket)
  }

  return {
    ticket() {
      const ticket = randomUUID()
      tickets.add(ticket)
      return `/link/?ticket=${ticket}&app_id=A0123`
    },
    upgrade(request, socket, head) {
      const url = new URL(request.url ?? '/', 'http://fake')
      const isGood = url.pathname === '/link/' && tickets.delete(url.searchParams.get('ticket') ?? '') && sockets.size < SOCKETS_MAX
      if (isGood) server.handleUpgrade(request, socket, head, welcome)
      else socket.end('HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n\r\n')
    },
    emit(envelope) {
      const next: Pending = { ...envelope, id: randomUUID(), attempt: 0, via: undefined }
      pending.set(next.id, next)
      sendOut(next)
    },
    delivered,
    acknowledged,
    get open() {
      return sockets.size
    },
    get opened() {
      return opened
    },
    announce: (reason) => all((socket) => socket.send(JSON.stringify({ type: 'disconnect', reason, debug_info: { host: 'fake' } }))),
    cut(how) {
      all((socket) => {
        if (how === 'close') socket.close(1000)
        else if (how === 'reset') socket.terminate()
        else muted.add(socket)
      })
    },
    raw: (frame) => all((socket) => socket.send(frame)),
    hush() {
      isHushed = true
    },
    close() {
      for (const { timer } of pending.values()) clearTimeout(timer)
      all((socket) => socket.terminate())
      server.close()
    },
  }
}

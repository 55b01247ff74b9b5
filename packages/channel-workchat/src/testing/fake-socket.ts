/** Long connections of the fake: tickets, frames, parts, and events that are sent again until they are acknowledged. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { CONTROL, DATA, decodeFrame, encodeFrame, type Frame, headerOf } from '../frame.ts'

/** The times that the platform announces to its clients, in seconds. */
export interface FakeClientConfig {
  readonly PingInterval: number
  readonly ReconnectCount: number
  readonly ReconnectInterval: number
  readonly ReconnectNonce: number
}

export interface WorkchatSocket {
  /** Returns the path and the query for one connection. */
  ticket(): string
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Sends an event or a callback over one of the connections, as soon as there is one. */
  emit(event: object): void
  /** The events that were acknowledged with 200, and the codes of all answers. */
  readonly acknowledged: readonly object[]
  readonly codes: readonly number[]
  readonly pings: number
  /** The number of open connections, and the number ever opened. */
  readonly open: number
  readonly opened: number
  /** Ends every connection normally or abruptly, or keeps it open without traffic. */
  cut(how: 'close' | 'reset' | 'mute'): void
  /** Sends a frame unchanged over every connection. */
  raw(frame: Uint8Array): void
  /** Refuses connections with this status of the handshake. */
  refuse(status: number | undefined): void
  /** Answers no pings of the WebSocket protocol from now on. */
  ignorePings(): void
  close(): void
}

export interface SocketSettings {
  config(): FakeClientConfig
  /** How long the platform waits for an acknowledgement, and its pauses before it sends an event again. */
  readonly ackMs: number
  readonly againMs: readonly number[]
  /** The largest payload of a frame; a longer event has several parts. */
  readonly partBytes: number
}

interface Pending {
  readonly event: object
  readonly id: string
  attempt: number
  via: WebSocket | undefined
  /** Runs while an acknowledgement or the pause before the next attempt is awaited. */
  timer?: NodeJS.Timeout | undefined
}

const SERVICE = 33_554_678
const CONNECTIONS_MAX = 50

export function createWorkchatSocket({ config, ackMs, againMs, partBytes }: SocketSettings): WorkchatSocket {
  const server = new WebSocketServer({ noServer: true, autoPong: false })
  const tickets = new Set<string>()
  const sockets = new Set<WebSocket>()
  const muted = new Set<WebSocket>()
  const pending = new Map<string, Pending>()
  const acknowledged: object[] = []
  const codes: number[] = []
  let [opened, pings, seq] = [0, 0, 0n]
  let refusal: number | undefined
  let isUnfriendly = false

  const send = (entry: Pending): void => {
    clearTimeout(entry.timer)
    entry.timer = undefined
    // The platform sends each event over one connection, chosen at random.
    entry.via = [...sockets].find((socket) => socket.readyState === socket.OPEN && !muted.has(socket))
    if (!entry.via) return
    const bytes = Buffer.from(JSON.stringify(entry.event))
    const parts = Math.max(1, Math.ceil(bytes.length / partBytes))
    for (let part = 0; part < parts; part++) {
      entry.via.send(
        encodeFrame({
          seqId: ++seq,
          logId: seq,
          service: SERVICE,
          method: DATA,
          headers: Object.entries({ type: 'event', message_id: entry.id, trace_id: entry.id, sum: `${parts}`, seq: `${part}` }).map(
            ([key, value]) => ({ key, value }),
          ),
          payload: bytes.subarray(part * partBytes, (part + 1) * partBytes),
        }),
      )
    }
    entry.timer = setTimeout(() => again(entry), ackMs).unref()
  }
  const again = (entry: Pending): void => {
    clearTimeout(entry.timer)
    entry.via = undefined
    const pause = againMs[entry.attempt++]
    if (pause === undefined) pending.delete(entry.id)
    else entry.timer = setTimeout(() => send(entry), pause).unref()
  }
  const onFrame = (socket: WebSocket, frame: Frame): void => {
    if (frame.method === CONTROL && headerOf(frame, 'type') === 'ping') {
      pings += 1
      const pong = { ...frame, headers: [{ key: 'type', value: 'pong' }], payload: Buffer.from(JSON.stringify(config())) }
      socket.send(encodeFrame(pong))
      return
    }
    const entry = pending.get(headerOf(frame, 'message_id'))
    if (frame.method !== DATA || !entry) return
    const { code } = JSON.parse(Buffer.from(frame.payload ?? []).toString()) as { code: number }
    codes.push(code)
    if (code !== 200) again(entry)
    else {
      clearTimeout(entry.timer)
      pending.delete(entry.id)
      acknowledged.push(entry.event)
    }
  }
  const welcome = (socket: WebSocket): void => {
    sockets.add(socket)
    opened += 1
    socket.on('message', (data) => {
      if (!muted.has(socket)) onFrame(socket, decodeFrame(data as Buffer))
    })
    socket.on('ping', (data) => {
      if (!muted.has(socket) && !isUnfriendly) socket.pong(data)
    })
    socket.on('close', () => {
      sockets.delete(socket)
      for (const entry of [...pending.values()]) if (entry.via === socket) again(entry)
    })
    for (const entry of [...pending.values()]) if (!entry.via && !entry.timer) send(entry)
  }

  return {
    ticket() {
      const ticket = randomUUID()
      tickets.add(ticket)
      return `/ws/v2?device_id=${ticket}&service_id=${SERVICE}`
    },
    upgrade(request, socket, head) {
      const url = new URL(request.url ?? '/', 'http://fake')
      const status = refusal ?? (tickets.delete(url.searchParams.get('device_id') ?? '') && sockets.size < CONNECTIONS_MAX ? 0 : 514)
      if (status === 0) return server.handleUpgrade(request, socket, head, welcome)
      socket.end(`HTTP/1.1 400 Bad Request\r\nhandshake-status: ${status}\r\nhandshake-msg: refused\r\nconnection: close\r\n\r\n`)
    },
    emit(event) {
      const entry: Pending = { event, id: randomUUID(), attempt: 0, via: undefined }
      pending.set(entry.id, entry)
      send(entry)
    },
    acknowledged,
    codes,
    get pings() {
      return pings
    },
    get open() {
      return sockets.size
    },
    get opened() {
      return opened
    },
    cut(how) {
      for (const socket of [...sockets]) {
        if (how === 'close') socket.close(1000)
        else if (how === 'reset') socket.terminate()
        else muted.add(socket)
      }
    },
    raw(frame) {
      for (const socket of sockets) socket.send(frame)
    },
    refuse(status) {
      refusal = status
    },
    ignorePings() {
      isUnfriendly = true
    },
    close() {
      for (const { timer } of pending.values()) clearTimeout(timer)
      for (const socket of sockets) socket.terminate()
      server.close()
    },
  }
}

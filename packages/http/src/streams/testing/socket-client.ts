/** A WebSocket client, and a raw one for bytes that no library sends. */
import { connect, type Socket } from 'node:net'
import { WebSocket } from 'ws'
import { Inbox } from './inbox.ts'
import { TOKENS } from './stream-server.ts'

export interface SocketClient {
  readonly socket: WebSocket
  readonly messages: Inbox<Record<string, unknown>>
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>
  send(frame: unknown): void
}

export interface ConnectOptions {
  readonly protocols?: string[]
  readonly headers?: Record<string, string>
}

const BEARER = { authorization: `Bearer ${TOKENS.d1}` }

/** Rejects with the HTTP status if the upgrade is refused. */
export function connectSocket(url: string, path: string, { protocols = [], headers = BEARER }: ConnectOptions = {}): Promise<SocketClient> {
  const socket = new WebSocket(url.replace('http:', 'ws:') + path, protocols, { headers, perMessageDeflate: false })
  const messages = new Inbox<Record<string, unknown>>()
  const closed = new Promise<{ code: number; reason: string }>((resolve) =>
    socket.once('close', (code, reason) => resolve({ code, reason: reason.toString() })),
  )
  socket.on('message', (data) => messages.push(JSON.parse(data.toString())))
  return new Promise((resolve, reject) => {
    socket.once('unexpected-response', (request, response) => {
      request.destroy()
      reject(new Error(`refused with ${response.statusCode}`))
    })
    socket.on('error', reject)
    socket.once('open', () => resolve({ socket, messages, closed, send: (frame) => socket.send(JSON.stringify(frame)) }))
  })
}

export interface RawSocket {
  readonly transport: Socket
  /** All bytes that the server has written. */
  received(): string
  readonly closed: Promise<void>
}

/** Connects to the server and writes these bytes. */
export function openRaw(port: number, bytes: string | Buffer): RawSocket {
  const chunks: Buffer[] = []
  const transport = connect(port, '127.0.0.1', () => transport.write(bytes))
  transport.on('data', (chunk) => chunks.push(chunk))
  transport.on('error', () => {})
  const closed = new Promise<void>((resolve) => transport.once('close', () => resolve()))
  return { transport, closed, received: () => Buffer.concat(chunks).toString('latin1') }
}

/** An upgrade request with additional header lines. */
export const upgradeRequest = (path: string, lines: readonly string[] = []): string =>
  [
    `GET ${path} HTTP/1.1`,
    'Host: 127.0.0.1',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ...lines,
    '',
    '',
  ].join('\r\n')

/** A masked client frame. The mask is zero, so the payload is readable. */
export function clientFrame(opcode: number, payload: Buffer): Buffer {
  const head = payload.length < 126 ? Buffer.from([0x80 | opcode, 0x80 | payload.length]) : Buffer.from([0x80 | opcode, 0xfe, 0, 0])
  if (payload.length >= 126) head.writeUInt16BE(payload.length, 2)
  return Buffer.concat([head, Buffer.alloc(4), payload])
}

/** A fake GDB server with a chip that is halted or running, and with configurable faults. */
import { createServer, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { type Frame, FrameParser, frameOf } from '../gdb/frames.ts'
import { listen } from './listen.ts'

/** The report of a chip that the connection has halted. */
const STOP_REPLY = 'T02thread:01;'

export interface GdbServerBehavior {
  /** Blocks of memory as hexadecimal text, by their address. */
  readonly memory?: Readonly<Record<number, string>>
  readonly features?: string
  readonly architecture?: string
  /** The stop report of a halted chip; by default it was halted by the connection. */
  readonly stopReply?: string
  /** The connection does not halt the chip, and a running chip has no stop report. */
  readonly haltsWhenAsked?: true
  /** How often each reply is corrupt before it is correct. */
  readonly corruptReplies?: number
  /** How often each request is rejected as corrupt. */
  readonly rejections?: number
  readonly sendsBytewise?: true
  readonly neverAcks?: true
  /** Sent before each reply. */
  readonly noise?: string
  /** Sent instead of each reply, again and again. */
  readonly floods?: string
  /** Sends nothing at all. */
  readonly isSilent?: true
  /** Changes each reply. */
  readonly reply?: (request: string, reply: string) => string
}

export interface FakeGdbServer {
  /** `host:port`. */
  readonly address: string
  /** All packets received, in order; `interrupt` for the interrupt byte. */
  readonly requests: readonly string[]
  isRunning(): boolean
  /** Resolves once every connection is closed. */
  left(): Promise<void>
  close(): Promise<void>
}

export async function startFakeGdbServer(behavior: GdbServerBehavior = {}): Promise<FakeGdbServer> {
  const requests: string[] = []
  const sockets = new Set<Socket>()
  let isRunning = true
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket))
    new GdbSession(socket, behavior, requests, (running) => {
      isRunning = running
    })
  })
  const { address, close } = await listen(server)
  return {
    address,
    requests,
    isRunning: () => isRunning,
    async left() {
      while (sockets.size > 0) await setTimeout(1)
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      await close()
    },
  }
}

/** One connection of a client. */
class GdbSession {
  readonly #socket: Socket
  readonly #behavior: GdbServerBehavior
  readonly #requests: string[]
  readonly #onStateChange: (isRunning: boolean) => void
  #isRunning = false
  #hasAcks = true
  /** How often to reject the next request, and to corrupt the next reply. */
  #toReject: number
  #toCorrupt = 0
  #lastReply = ''

  constructor(socket: Socket, behavior: GdbServerBehavior, requests: string[], onStateChange: (isRunning: boolean) => void) {
    this.#socket = socket
    this.#behavior = behavior
    this.#requests = requests
    this.#onStateChange = onStateChange
    this.#toReject = behavior.rejections ?? 0
    this.#setRunning(behavior.haltsWhenAsked === true)
    const parser = new FrameParser()
    socket.on('data', (bytes) => {
      if (behavior.isSilent) return
      if (bytes.includes(3)) this.#interrupt()
      for (const frame of parser.push(bytes)) this.#onFrame(frame)
    })
  }

  #setRunning(isRunning: boolean): void {
    this.#isRunning = isRunning
    this.#onStateChange(isRunning)
  }

  #interrupt(): void {
    this.#requests.push('interrupt')
    this.#setRunning(false)
    this.#answer('interrupt', this.#behavior.stopReply ?? STOP_REPLY)
  }

  #onFrame(frame: Frame): void {
    if (frame.kind === 'nak') this.#send(this.#lastReply)
    else if (frame.kind === 'packet' && this.#toReject-- > 0) this.#socket.write('-')
    else if (frame.kind === 'packet') this.#onRequest(frame.body)
  }

  #onRequest(request: string): void {
    this.#toReject = this.#behavior.rejections ?? 0
    this.#requests.push(request)
    if (this.#hasAcks && !this.#behavior.neverAcks) this.#socket.write('+')
    if (request === 'c') this.#setRunning(true)
    else if (request !== '?' || !this.#isRunning) this.#answer(request, replyTo(request, this.#behavior))
    if (request === 'QStartNoAckMode') this.#hasAcks = false
  }

  #answer(request: string, reply: string): void {
    this.#toCorrupt = this.#behavior.corruptReplies ?? 0
    if (this.#behavior.floods === undefined) this.#send(this.#behavior.reply?.(request, reply) ?? reply)
    else this.#flood(this.#behavior.floods)
  }

  #send(reply: string): void {
    this.#lastReply = reply
    const frame = Buffer.concat([Buffer.from(this.#behavior.noise ?? '', 'latin1'), frameOf(reply)])
    if (this.#toCorrupt > 0) frame.writeUInt8(0x7a, frame.length - 1)
    this.#toCorrupt--
    void this.#write(frame)
  }

  async #write(bytes: Uint8Array): Promise<void> {
    if (!this.#behavior.sendsBytewise) return void this.#socket.write(bytes)
    for (const byte of bytes) {
      this.#socket.write(Uint8Array.of(byte))
      await setTimeout(0)
    }
  }

  #flood(text: string): void {
    if (!this.#socket.destroyed) this.#socket.write(text, () => setImmediate(() => this.#flood(text)))
  }
}

function replyTo(request: string, { memory = {}, features = '', architecture = 'arm', stopReply = STOP_REPLY }: GdbServerBehavior): string {
  if (request.startsWith('qSupported')) return features
  if (request === 'QStartNoAckMode') return 'OK'
  if (request === '?') return stopReply
  if (request.startsWith('qXfer')) return `l<target version="1.0"><architecture>${architecture}</architecture></target>`
  const [, address = '', length = ''] = /^m([0-9a-f]+),([0-9a-f]+)$/.exec(request) ?? []
  const [start, size] = [Number.parseInt(address, 16), Number.parseInt(length, 16)]
  const found = Object.entries(memory).find(([first, hex]) => start >= Number(first) && start + size <= Number(first) + hex.length / 2)
  return found ? found[1].slice(2 * (start - Number(found[0])), 2 * (start - Number(found[0]) + size)) : 'E14'
}

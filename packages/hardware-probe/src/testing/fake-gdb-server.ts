/** A fake GDB server with a chip that is halted or running, and with configurable faults. */
import { createServer, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { type Frame, FrameParser, frameOf } from '../gdb/frames.ts'
import { listen } from './listen.ts'

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

export async function startFakeGdbServer(options: GdbServerBehavior = {}): Promise<FakeGdbServer> {
  const requests: string[] = []
  const sockets = new Set<Socket>()
  let isRunning = true
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket))
    serve(socket, options, requests, (runs) => {
      isRunning = runs
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

function serve(socket: Socket, options: GdbServerBehavior, requests: string[], setRunning: (runs: boolean) => void): void {
  const { corruptReplies = 0, rejections = 0, floods, noise = '', stopReply = 'T02thread:01;' } = options
  const parser = new FrameParser()
  let runs = options.haltsWhenAsked === true
  let hasAcks = true
  let toReject = rejections
  let [last, toCorrupt] = ['', 0]
  const setState = (running: boolean) => {
    runs = running
    setRunning(running)
  }
  setState(runs)

  const write = async (bytes: Uint8Array) => {
    if (!options.sendsBytewise) return void socket.write(bytes)
    for (const byte of bytes) {
      socket.write(Uint8Array.of(byte))
      await setTimeout(0)
    }
  }
  const send = (reply: string) => {
    last = reply
    const frame = Buffer.concat([Buffer.from(noise, 'latin1'), frameOf(reply)])
    if (toCorrupt > 0) frame.writeUInt8(0x7a, frame.length - 1)
    toCorrupt--
    void write(frame)
  }
  const flood = () => {
    if (socket.destroyed) return
    socket.write(floods ?? '', () => setImmediate(flood))
  }
  const answer = (request: string, reply: string | undefined) => {
    if (reply === undefined) return
    toCorrupt = corruptReplies
    if (floods === undefined) send(options.reply?.(request, reply) ?? reply)
    else flood()
  }
  const handle = (frame: Frame) => {
    if (frame.kind === 'nak') return send(last)
    if (frame.kind !== 'packet') return
    if (toReject-- > 0) return void socket.write('-')
    toReject = rejections
    requests.push(frame.body)
    if (hasAcks && !options.neverAcks) socket.write('+')
    if (frame.body === 'c') setState(true)
    else if (!(frame.body === '?' && runs)) answer(frame.body, replyTo(frame.body, options))
    if (frame.body === 'QStartNoAckMode') hasAcks = false
  }
  socket.on('data', (bytes) => {
    if (options.isSilent) return
    if (bytes.includes(3)) {
      requests.push('interrupt')
      setState(false)
      answer('interrupt', stopReply)
    }
    for (const frame of parser.push(bytes)) handle(frame)
  })
}

function replyTo(request: string, { memory = {}, features = '', architecture = 'arm', stopReply = 'T02thread:01;' }: GdbServerBehavior) {
  if (request.startsWith('qSupported')) return features
  if (request === 'QStartNoAckMode') return 'OK'
  if (request === '?') return stopReply
  if (request.startsWith('qXfer')) return `l<target version="1.0"><architecture>${architecture}</architecture></target>`
  const [, address = '', length = ''] = /^m([0-9a-f]+),([0-9a-f]+)$/.exec(request) ?? []
  const [start, size] = [Number.parseInt(address, 16), Number.parseInt(length, 16)]
  const found = Object.entries(memory).find(([first, hex]) => start >= Number(first) && start + size <= Number(first) + hex.length / 2)
  return found ? found[1].slice(2 * (start - Number(found[0])), 2 * (start - Number(found[0]) + size)) : 'E14'
}

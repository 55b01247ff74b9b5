/** A GDB server with a chip that is either halted or runs, and with faults on request. */
import { createServer, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { createFrames, type Frame, frameOf } from '../gdb/frames.ts'
import { listen } from './listen.ts'

export interface FakeGdbServerOptions {
  /** By address, as hexadecimal text. */
  readonly memory?: Readonly<Record<number, string>>
  readonly features?: string
  readonly architecture?: string
  /** What it reports of a halted chip; default: halted by the connection. */
  readonly stopReply?: string
  /** It does not halt for who connects, and reports nothing of a chip that runs. */
  readonly haltsWhenAsked?: true
  /** Replies are spoiled this often before each one that is right. */
  readonly spoiledReplies?: number
  /** Requests are taken for spoiled this often. */
  readonly refusals?: number
  readonly sendsBytewise?: true
  readonly neverAcks?: true
  /** Sent before each reply. */
  readonly noise?: string
  /** Sent instead of each reply, again and again. */
  readonly floods?: string
  /** Answers nothing at all. */
  readonly isSilent?: true
  /** Changes each reply. */
  readonly reply?: (request: string, reply: string) => string
}

export interface FakeGdbServer {
  /** `host:port`. */
  readonly address: string
  /** All packets that came, in order; `interrupt` for that byte. */
  readonly requests: readonly string[]
  isRunning(): boolean
  /** Resolves once no connection is left. */
  left(): Promise<void>
  close(): Promise<void>
}

export async function startFakeGdbServer(options: FakeGdbServerOptions = {}): Promise<FakeGdbServer> {
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

function serve(socket: Socket, options: FakeGdbServerOptions, requests: string[], setRunning: (runs: boolean) => void): void {
  const { spoiledReplies = 0, refusals = 0, floods, noise = '', stopReply = 'T02thread:01;' } = options
  const frames = createFrames()
  let runs = options.haltsWhenAsked === true
  let hasAcks = true
  let toRefuse = refusals
  let [last, toSpoil] = ['', 0]
  const turn = (running: boolean) => {
    runs = running
    setRunning(running)
  }
  turn(runs)

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
    if (toSpoil > 0) frame.writeUInt8(0x7a, frame.length - 1)
    toSpoil--
    void write(frame)
  }
  const flood = () => {
    if (socket.destroyed) return
    socket.write(floods ?? '', () => setImmediate(flood))
  }
  const answer = (request: string, reply: string | undefined) => {
    if (reply === undefined) return
    toSpoil = spoiledReplies
    if (floods === undefined) send(options.reply?.(request, reply) ?? reply)
    else flood()
  }
  const take = (frame: Frame) => {
    if (frame.kind === 'nak') return send(last)
    if (frame.kind !== 'packet') return
    if (toRefuse-- > 0) return void socket.write('-')
    toRefuse = refusals
    requests.push(frame.body)
    if (hasAcks && !options.neverAcks) socket.write('+')
    if (frame.body === 'c') turn(true)
    else if (!(frame.body === '?' && runs)) answer(frame.body, replyTo(frame.body, options))
    if (frame.body === 'QStartNoAckMode') hasAcks = false
  }
  socket.on('data', (bytes) => {
    if (options.isSilent) return
    if (bytes.includes(3)) {
      requests.push('interrupt')
      turn(false)
      answer('interrupt', stopReply)
    }
    for (const frame of frames(bytes)) take(frame)
  })
}

function replyTo(request: string, { memory = {}, features = '', architecture = 'arm', stopReply = 'T02thread:01;' }: FakeGdbServerOptions) {
  if (request.startsWith('qSupported')) return features
  if (request === 'QStartNoAckMode') return 'OK'
  if (request === '?') return stopReply
  if (request.startsWith('qXfer')) return `l<target version="1.0"><architecture>${architecture}</architecture></target>`
  const [, address = '', length = ''] = /^m([0-9a-f]+),([0-9a-f]+)$/.exec(request) ?? []
  const [start, size] = [Number.parseInt(address, 16), Number.parseInt(length, 16)]
  const found = Object.entries(memory).find(([first, hex]) => start >= Number(first) && start + size <= Number(first) + hex.length / 2)
  return found ? found[1].slice(2 * (start - Number(found[0])), 2 * (start - Number(found[0]) + size)) : 'E14'
}

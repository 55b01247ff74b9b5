/** A connection to a GDB server: one request at a time, one reply each, with bounds on everything that the server sends. */
import type { Socket } from 'node:net'
import { AppError, errorText } from '@sluice/sdk'
import { type Frame, FrameParser, frameOf } from './frames.ts'

/** How often one packet is repeated in either direction. */
const REPEATS_MAX = 3
/** Other packets between a request and its reply. */
const STRAY_PACKETS_MAX = 64
/** Bytes between a request and its reply. */
const REPLY_BYTES_MAX = 65_536

/** A report that the target has stopped, or that there is nothing to report. */
const STOP_REPLY = /^(?:[STWX][0-9a-fA-F]{2}|E[0-9a-fA-F]{2}$|OK$|N$|$)/
/** Output of the program on the chip. */
const CONSOLE_OUTPUT = /^O(?:[0-9a-fA-F]{2})+$/
/** The byte that halts a running target. */
const INTERRUPT = Uint8Array.of(3)

/** A packet that was sent and waits for its reply. */
interface PendingRequest {
  readonly sent: Uint8Array
  /** The replies that answer it; `ack` when the server only acknowledges it. */
  readonly accepts: RegExp | 'ack'
  readonly resolve: (body: string) => void
  readonly reject: (error: unknown) => void
}

/**
 * Every request throws `upstream` when the server breaks the protocol, `unavailable` when it closes the connection, and the reason of
 * the signal when that aborts. After such an error the link can only be closed.
 */
export class GdbLink {
  readonly #socket: Socket
  readonly #name: string
  readonly #signal: AbortSignal
  readonly #parser = new FrameParser()
  /** Whether packets are acknowledged. */
  #hasAcks = true
  /** Whether this link let the target run. */
  #isRunning = false
  #staysHalted = false
  #failure: unknown
  #pending: PendingRequest | undefined
  #repeats = 0
  #strayPackets = 0
  #bytesIn = 0

  /** Takes over a connected socket. `name` completes "The connection to …" in errors. */
  constructor(socket: Socket, name: string, signal: AbortSignal) {
    this.#socket = socket
    this.#name = name
    this.#signal = signal
    socket.on('data', (bytes: Uint8Array) => this.#onData(bytes))
    socket.on('error', (cause) => this.#fail(new AppError('unavailable', `The connection to ${name} broke: ${cause.message}`, { cause })))
    socket.on('close', () => this.#fail(new AppError('unavailable', `The connection to ${name} was closed by the server`)))
    signal.addEventListener('abort', this.#onAbort, { once: true })
  }

  /** Sends a packet and returns the first reply that matches. Other packets are skipped. */
  request(packet: string, accepts: RegExp): Promise<string> {
    return this.#exchange(frameOf(packet), accepts)
  }

  /** Asks a halted target for its stop report with `?`, or halts a running one with `interrupt`. Returns the report. */
  requestStop(how: '?' | 'interrupt'): Promise<string> {
    this.#isRunning = false
    return this.#exchange(how === '?' ? frameOf('?') : INTERRUPT, STOP_REPLY)
  }

  /** Stops acknowledging packets, after the server has agreed to it. */
  disableAcks(): void {
    this.#hasAcks = false
  }

  /** Keeps a target halted that was halted before: `run` and `close` do not let it run. */
  keepHalted(): void {
    this.#staysHalted = true
  }

  /** Lets the target run. Resolves when the server has received the command; any later byte may halt the target. */
  async run(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure
    if (this.#staysHalted) return
    this.#isRunning = true
    if (this.#hasAcks) await this.#exchange(frameOf('c'), 'ack')
    else this.#socket.write(frameOf('c'))
  }

  /** Ends the connection. Resolves when the server has closed it too, and so has processed every command. */
  async end(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#socket.once('close', resolve).end()
    await promise
  }

  /** Closes the connection, and lets the target run if it does not run yet. Idempotent. */
  close(): void {
    this.#signal.removeEventListener('abort', this.#onAbort)
    this.#failure ??= new AppError('unavailable', `The connection to ${this.#name} is closed`)
    if (!this.#isRunning && !this.#staysHalted && this.#socket.writable) this.#socket.write(frameOf('c'))
    this.#isRunning = true
    this.#socket.destroySoon()
  }

  async #exchange(sent: Uint8Array, accepts: PendingRequest['accepts']): Promise<string> {
    if (this.#failure !== undefined) throw this.#failure
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    this.#repeats = 0
    this.#strayPackets = 0
    this.#bytesIn = 0
    this.#pending = { sent, accepts, resolve, reject }
    this.#socket.write(sent)
    try {
      return await promise
    } finally {
      this.#pending = undefined
    }
  }

  #onData(bytes: Uint8Array): void {
    this.#bytesIn += bytes.length
    try {
      if (this.#bytesIn > REPLY_BYTES_MAX) throw new RangeError(`a reply of more than ${REPLY_BYTES_MAX} bytes`)
      for (const frame of this.#parser.push(bytes)) if (this.#failure === undefined) this.#onFrame(frame)
    } catch (error) {
      this.#protocolError(errorText(error))
    }
  }

  #onFrame(frame: Frame): void {
    // A running target may report anything; only the acknowledgement of the command matters.
    if (this.#isRunning && frame.kind !== 'ack' && frame.kind !== 'nak') return
    if (frame.kind === 'ack') {
      if (this.#pending?.accepts === 'ack') this.#pending.resolve('')
    } else if (frame.kind === 'nak') {
      if (this.#pending) this.#repeat(this.#pending.sent)
    } else if (frame.kind === 'corrupt') this.#repeat(Buffer.from('-'))
    else if (frame.kind === 'packet') this.#onPacket(frame.body)
  }

  #onPacket(body: string): void {
    if (this.#hasAcks) this.#socket.write('+')
    const accepts = this.#pending?.accepts
    if (accepts instanceof RegExp && accepts.test(body) && !CONSOLE_OUTPUT.test(body)) this.#pending?.resolve(body)
    else if (++this.#strayPackets > STRAY_PACKETS_MAX) this.#protocolError('no reply to the request')
  }

  /** Sends a packet again, or asks the server to send its packet again. */
  #repeat(bytes: Uint8Array): void {
    if (!this.#hasAcks || ++this.#repeats > REPEATS_MAX) this.#protocolError('packets stay corrupt')
    else this.#socket.write(bytes)
  }

  #protocolError(problem: string): void {
    this.#fail(new AppError('upstream', `The connection to ${this.#name} breaks the GDB protocol: ${problem}`))
  }

  readonly #onAbort = (): void => this.#fail(this.#signal.reason)

  #fail(error: unknown): void {
    this.#failure ??= error
    this.#pending?.reject(this.#failure)
    this.#pending = undefined
    this.#socket.pause()
  }
}

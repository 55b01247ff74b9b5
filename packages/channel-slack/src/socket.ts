/** One connection in Slack's socket mode. Envelopes arrive on it and are acknowledged once their messages are durable. */
import { endsWithin } from '@sluice/kit'
import { type Members, members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import { proxyAgent } from '@sluice/kit/proxy'
import { AppError, type Clock, errorText } from '@sluice/sdk'
import type { RawData, WebSocket } from 'ws'

/**
 * Why a connection has to be replaced. After `refresh` it works for some more seconds; `disabled` means that the app has
 * socket mode turned off.
 */
export type Ending = 'refresh' | 'disabled' | 'closed'

export interface ConnectionEvents {
  /** Slack is about to send envelopes. */
  onHello(): void
  /** Handles an envelope, in the order of arrival. It is acknowledged if the promise resolves; otherwise Slack sends it again. */
  onEnvelope(type: string, payload: Members): Promise<void>
}

const HELLO_MS = 15_000
const PING_MS = 15_000
/** Slack sends a ping every few seconds, so the connection is dead after this time without a frame. */
const SILENCE_MS = 40_000
const DRAIN_MS = 3000
const CLOSE_MS = 1000
const FRAME_BYTES_MAX = 4 * 1024 * 1024

export class SocketConnection {
  readonly #socket: WebSocket
  readonly #clock: Clock
  readonly #events: ConnectionEvents
  readonly #hello = Promise.withResolvers<void>()
  readonly #ending = Promise.withResolvers<Ending>()
  readonly #closed = new AbortController()
  readonly #hasClosed = Promise.withResolvers<void>()
  readonly #inFlight = new Set<Promise<void>>()
  #lastFrameAtMs: number
  #problem = 'before it said hello'

  private constructor(socket: WebSocket, clock: Clock, events: ConnectionEvents, signal: AbortSignal) {
    this.#socket = socket
    this.#clock = clock
    this.#events = events
    this.#lastFrameAtMs = clock.monotonicMs()
    this.#observe(signal)
  }

  /** Connects, and resolves once Slack has said hello. Throws `unavailable`. The connection closes when `signal` aborts. */
  static async open(url: string, clock: Clock, events: ConnectionEvents, signal: AbortSignal): Promise<SocketConnection> {
    const { WebSocket } = await import('ws')
    const agent = proxyAgent(new URL(url))
    const limits = { handshakeTimeout: HELLO_MS, maxPayload: FRAME_BYTES_MAX, perMessageDeflate: false }
    const socket = new WebSocket(url, { ...limits, ...(agent && { agent }) })
    const connection = new SocketConnection(socket, clock, events, signal)
    await connection.#untilHello()
    void connection.#keepAlive()
    return connection
  }

  /** Resolves once, with the first reason to replace the connection. */
  get ending(): Promise<Ending> {
    return this.#ending.promise
  }

  get isOpen(): boolean {
    return this.#socket.readyState === this.#socket.OPEN
  }

  /** Resolves when the connection has closed. */
  get closed(): Promise<void> {
    return this.#hasClosed.promise
  }

  /** Closes the connection once the envelopes that have arrived are acknowledged, but within 3 s. Idempotent. */
  async drain(): Promise<void> {
    await endsWithin(Promise.all(this.#inFlight), DRAIN_MS, this.#clock, this.#closed.signal)
    this.close()
  }

  /** Closes the connection. Idempotent. */
  close(): void {
    this.#socket.close(1000)
    void this.#clock.sleep(CLOSE_MS, this.#closed.signal).then(() => this.#socket.terminate())
  }

  #observe(signal: AbortSignal): void {
    const close = () => this.close()
    const alive = () => {
      this.#lastFrameAtMs = this.#clock.monotonicMs()
    }
    this.#socket.on('message', (data) => {
      alive()
      this.#onFrame(data)
    })
    this.#socket.on('ping', alive).on('pong', alive)
    // The `close` event follows.
    this.#socket.on('error', (error) => {
      this.#problem = `(${errorText(error)})`
    })
    this.#socket.once('close', () => {
      signal.removeEventListener('abort', close)
      this.#closed.abort()
      this.#hasClosed.resolve()
      this.#hello.reject(new AppError('unavailable', `The connection to slack ended ${this.#problem}`))
      this.#ending.resolve('closed')
    })
    signal.addEventListener('abort', close, { once: true })
    if (signal.aborted) close()
  }

  #onFrame(data: RawData): void {
    const frame = members(parsedOrUndefined(String(data)))
    if (frame.type === 'hello') {
      this.#events.onHello()
      this.#hello.resolve()
    }
    if (frame.type === 'disconnect') this.#ending.resolve(frame.reason === 'link_disabled' ? 'disabled' : 'refresh')
    const envelope = text(frame.envelope_id)
    if (envelope === '') return
    const taken = this.#take(envelope, text(frame.type), members(frame.payload)).finally(() => this.#inFlight.delete(taken))
    this.#inFlight.add(taken)
  }

  async #take(envelope: string, type: string, payload: Members): Promise<void> {
    try {
      await this.#events.onEnvelope(type, payload)
      if (this.isOpen) this.#socket.send(JSON.stringify({ envelope_id: envelope }))
    } catch {
      // The handler has logged the failure. Without an acknowledgement Slack sends the envelope again.
    }
  }

  async #untilHello(): Promise<void> {
    try {
      await Promise.race([this.#hello.promise, this.#helloDeadline()])
    } catch (error) {
      this.#socket.terminate()
      throw error
    }
  }

  async #helloDeadline(): Promise<never> {
    await this.#clock.sleep(HELLO_MS, this.#closed.signal)
    throw new AppError('unavailable', `slack did not say hello within ${HELLO_MS / 1000} s`)
  }

  /** Sends pings, and terminates a connection whose other end disappeared without closing it. */
  async #keepAlive(): Promise<void> {
    const { signal } = this.#closed
    while (!signal.aborted) {
      await this.#clock.sleep(PING_MS, signal)
      if (signal.aborted) return
      if (this.#clock.monotonicMs() - this.#lastFrameAtMs > SILENCE_MS) return this.#socket.terminate()
      this.#socket.ping()
    }
  }
}

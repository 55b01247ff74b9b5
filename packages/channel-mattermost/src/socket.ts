/**
 * One connection to Mattermost's WebSocket. Events are numbered from 0 within the life of a connection id; a client that names the id and
 * the next number gets the events that it missed, as long as the server has them (about five minutes, and 128 events that were sent).
 * After such a resumption the server says no hello, so the answer to a ping tells that it has happened.
 */
import { type Members, members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import { AppError, type Clock, errorText } from '@sluice/sdk'
import type { RawData, WebSocket } from 'ws'

/** A connection that can be resumed. */
export interface Resumption {
  readonly connectionId: string
  /** The number of the next event, which is greater than 0. */
  readonly next: number
}

export interface SocketEvents {
  /** The server began a new connection, and does not have the events of an earlier one. */
  onHello(): void
  onEvent(event: string, data: Members): void
}

export interface SocketOptions {
  readonly url: string
  readonly token: string
  readonly clock: Clock
  readonly resumption: Resumption | undefined
  /** Returns the number of a request. Numbers are never used again, because answers may arrive on the next connection. */
  nextRequest(): number
}

const HELLO_MS = 15_000
const PING_MS = 30_000
/** A ping is answered at once, so the connection is dead after this time without a frame. */
const SILENCE_MS = 45_000
const CLOSE_MS = 1000
const FRAME_BYTES_MAX = 4 * 1024 * 1024

export class MattermostSocket {
  readonly #socket: WebSocket
  readonly #options: SocketOptions
  readonly #events: SocketEvents
  readonly #ready = Promise.withResolvers<void>()
  readonly #closed = new AbortController()
  readonly #hasClosed = Promise.withResolvers<void>()
  #lastFrameAtMs: number
  #connectionId: string
  #next: number
  #problem = 'before it was ready'

  private constructor(socket: WebSocket, options: SocketOptions, events: SocketEvents, signal: AbortSignal) {
    this.#socket = socket
    this.#options = options
    this.#events = events
    this.#lastFrameAtMs = options.clock.monotonicMs()
    this.#connectionId = options.resumption?.connectionId ?? ''
    this.#next = options.resumption?.next ?? 0
    this.#observe(signal)
  }

  /** Connects, and resolves once the server has authenticated the connection. Throws `unavailable`. Closes when `signal` aborts. */
  static async open(options: SocketOptions, events: SocketEvents, signal: AbortSignal): Promise<MattermostSocket> {
    const { WebSocket } = await import('ws')
    const url = new URL(options.url.replace(/^http/i, 'ws'))
    if (options.resumption) {
      url.searchParams.set('connection_id', options.resumption.connectionId)
      url.searchParams.set('sequence_number', String(options.resumption.next))
    }
    const socket = new WebSocket(url, {
      // Only a connection that is authenticated by a header can be resumed.
      headers: { authorization: `Bearer ${options.token}` },
      handshakeTimeout: HELLO_MS,
      maxPayload: FRAME_BYTES_MAX,
      perMessageDeflate: false,
    })
    const connection = new MattermostSocket(socket, options, events, signal)
    await connection.#untilReady()
    void connection.#keepAlive()
    return connection
  }

  /** Where another connection can continue; undefined if the server could not say which events it missed. */
  get resumption(): Resumption | undefined {
    return this.#connectionId !== '' && this.#next > 0 ? { connectionId: this.#connectionId, next: this.#next } : undefined
  }

  /** Resolves when the connection has closed. */
  get closed(): Promise<void> {
    return this.#hasClosed.promise
  }

  /** Closes the connection. Idempotent. */
  close(): void {
    this.#socket.close(1000)
    void this.#options.clock.sleep(CLOSE_MS, this.#closed.signal).then(() => this.#socket.terminate())
  }

  #observe(signal: AbortSignal): void {
    const close = () => this.close()
    const alive = () => {
      this.#lastFrameAtMs = this.#options.clock.monotonicMs()
    }
    this.#socket.on('open', () => {
      // A proxy may have removed the header. The server ignores the challenge if it has not.
      this.#request('authentication_challenge', { token: this.#options.token })
      this.#request('ping')
    })
    this.#socket.on('message', (data) => {
      alive()
      this.#onFrame(data)
    })
    this.#socket.on('ping', alive)
    // The `close` event follows.
    this.#socket.on('error', (error) => {
      this.#problem = `(${errorText(error)})`
    })
    this.#socket.once('close', () => {
      signal.removeEventListener('abort', close)
      this.#closed.abort()
      this.#hasClosed.resolve()
      this.#ready.reject(new AppError('unavailable', `The connection to mattermost ended ${this.#problem}`))
    })
    signal.addEventListener('abort', close, { once: true })
    if (signal.aborted) close()
  }

  #onFrame(frame: RawData): void {
    if (this.#closed.signal.aborted) return
    const { event, data, seq, status } = members(parsedOrUndefined(String(frame)))
    if (text(event) !== '') this.#onEvent(text(event), members(data), seq)
    else if (status === 'OK' && text(members(data).text) === 'pong') this.#ready.resolve()
    // The server keeps a connection open whose token was revoked, and only stops to send events.
    else if (status === 'FAIL') this.#forget('is no longer authenticated')
  }

  #onEvent(event: string, data: Members, seq: unknown): void {
    if (event === 'hello') {
      this.#connectionId = text(data.connection_id)
      this.#next = 0
    }
    const isNext = seq === this.#next
    this.#next += 1
    if (!isNext) this.#forget('skipped an event')
    else if (event === 'hello') this.#events.onHello()
    else this.#events.onEvent(event, data)
  }

  /** Ends a connection whose missing events another one must read from the conversations. */
  #forget(problem: string): void {
    this.#problem = `(it ${problem})`
    this.#connectionId = ''
    this.#next = 0
    this.#closed.abort()
    this.#socket.terminate()
  }

  #request(action: string, data?: object): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return
    this.#socket.send(JSON.stringify({ seq: this.#options.nextRequest(), action, ...(data && { data }) }))
  }

  async #untilReady(): Promise<void> {
    try {
      await Promise.race([this.#ready.promise, this.#deadline()])
    } catch (error) {
      this.#socket.terminate()
      throw error
    }
  }

  async #deadline(): Promise<never> {
    await this.#options.clock.sleep(HELLO_MS, this.#closed.signal)
    throw new AppError('unavailable', `The connection to mattermost ended ${this.#problem}`)
  }

  /** Sends pings, and terminates a connection whose other end disappeared without closing it. */
  async #keepAlive(): Promise<void> {
    const { signal } = this.#closed
    const { clock } = this.#options
    while (!signal.aborted) {
      await clock.sleep(PING_MS, signal)
      if (signal.aborted) return
      if (clock.monotonicMs() - this.#lastFrameAtMs > SILENCE_MS) return this.#socket.terminate()
      this.#request('ping')
    }
  }
}

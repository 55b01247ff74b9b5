/** One WebSocket connection over which a platform and a channel exchange JSON objects. */
import { AppError, type Clock, errorText } from '@sluice/sdk'
import type { RawData, WebSocket } from 'ws'
import { endsWithin } from '../time/ends-within.ts'
import { type Members, members, parsedOrUndefined } from './foreign-json.ts'
import { proxyAgent } from './proxy.ts'

export interface FrameSocketOptions {
  /** The name of the platform, for errors. */
  readonly platform: string
  readonly clock: Clock
  /** Closes the connection when it aborts. */
  readonly signal: AbortSignal
  /** Headers of the request that opens the connection, such as one that authenticates it. */
  readonly headers?: Readonly<Record<string, string>>
  /**
   * Takes a frame. The socket keeps count of the promises: when `framesMax` have not settled, it reads nothing until one does.
   * A rejected promise is the business of the caller, who has reported it.
   */
  onFrame(frame: Members, socket: FrameSocket): Promise<void> | undefined
  /** Sends a sign of life; a ping of the WebSocket protocol unless given. */
  onPing?(socket: FrameSocket): void
  readonly pingMs?: number
  /** The connection is dead after this time without any frame. */
  readonly silentMs?: number
  readonly framesMax?: number
  /** The close code of this end, for platforms that forget a session after 1000. Default: 1000. */
  readonly closeCode?: number
}

/** Why a connection ended. `code` is the close code of RFC 6455; 1006 without one. */
export interface SocketEnd {
  readonly code: number
  readonly detail: string
}

const OPEN_MS_MAX = 15_000
const PING_MS = 15_000
const SILENT_MS = 40_000
const FRAME_BYTES_MAX = 4 * 1024 * 1024
const FRAMES_MAX = 1000
const DRAIN_MS = 3000
const CLOSE_MS = 1000
const NORMAL = 1000
const NO_CODE = 1006

export class FrameSocket {
  readonly #socket: WebSocket
  readonly #options: FrameSocketOptions
  readonly #ended = Promise.withResolvers<SocketEnd>()
  readonly #over = new AbortController()
  readonly #inFlight = new Set<Promise<void>>()
  #lastFrameAtMs: number
  #problem = ''

  private constructor(socket: WebSocket, options: FrameSocketOptions) {
    this.#socket = socket
    this.#options = options
    this.#lastFrameAtMs = options.clock.monotonicMs()
  }

  /** Connects. Throws `unavailable`, also when `signal` aborts; the text never contains the URL, which may hold a credential. */
  static async open(url: string, options: FrameSocketOptions): Promise<FrameSocket> {
    const { WebSocket } = await import('ws')
    const address = URL.parse(url)
    if (!address || !/^wss?:$/.test(address.protocol)) throw new AppError('unavailable', `${options.platform} named no WebSocket address`)
    const { headers = {} } = options
    const agent = proxyAgent(address)
    const limits = { handshakeTimeout: OPEN_MS_MAX, maxPayload: FRAME_BYTES_MAX, perMessageDeflate: false }
    const raw = new WebSocket(address, { headers, ...limits, ...(agent && { agent }) })
    const socket = new FrameSocket(raw, options)
    const opened = Promise.withResolvers<void>()
    raw.once('open', opened.resolve)
    socket.#observe()
    const end = await Promise.race([opened.promise, socket.ended])
    if (end) throw new AppError('unavailable', `The connection to ${options.platform} could not be opened ${end.detail}`.trim())
    void socket.#keepAlive()
    return socket
  }

  /** Resolves when the connection has ended. */
  get ended(): Promise<SocketEnd> {
    return this.#ended.promise
  }

  get isOpen(): boolean {
    return this.#socket.readyState === this.#socket.OPEN
  }

  /** Whether nothing is read, because too many frames are being handled. */
  get isPaused(): boolean {
    return this.#socket.isPaused
  }

  /** Sends a frame; does nothing when the connection has ended. */
  send(frame: object): void {
    if (this.isOpen) this.#socket.send(JSON.stringify(frame))
  }

  /** Closes the connection once the frames that have arrived are handled, but within 3 s. Idempotent. */
  async drain(): Promise<void> {
    await endsWithin(Promise.allSettled(this.#inFlight), DRAIN_MS, this.#options.clock, this.#over.signal)
    this.close()
  }

  /** Closes the connection. Idempotent. */
  close(): void {
    this.#socket.close(this.#options.closeCode ?? NORMAL)
    void this.#options.clock.sleep(CLOSE_MS, this.#over.signal).then(() => this.#socket.terminate())
  }

  /** Breaks the connection at once, for a platform that does not answer any more. */
  terminate(problem: string): void {
    this.#problem ||= `(${problem})`
    this.#socket.terminate()
  }

  #observe(): void {
    const { signal, clock } = this.#options
    const close = (): void => this.close()
    const alive = (): void => {
      this.#lastFrameAtMs = clock.monotonicMs()
    }
    this.#socket.on('message', (data) => {
      alive()
      this.#take(data)
    })
    this.#socket.on('ping', alive).on('pong', alive)
    // The `close` event follows.
    this.#socket.on('error', (error) => {
      this.#problem ||= `(${errorText(error)})`
    })
    this.#socket.once('close', (code, reason) => {
      signal.removeEventListener('abort', close)
      this.#over.abort()
      const said = String(reason)
      this.#ended.resolve({ code, detail: this.#problem || (code === NO_CODE ? '' : `(${code}${said && `, ${said}`})`) })
    })
    signal.addEventListener('abort', close, { once: true })
    if (signal.aborted) close()
  }

  #take(data: RawData): void {
    const taken = this.#options.onFrame(members(parsedOrUndefined(String(data))), this)
    if (!taken) return
    const counted = taken
      .catch(() => undefined)
      .finally(() => {
        this.#inFlight.delete(counted)
        if (this.#socket.isPaused && this.#inFlight.size < this.#framesMax) this.#socket.resume()
      })
    this.#inFlight.add(counted)
    if (this.#inFlight.size >= this.#framesMax) this.#socket.pause()
  }

  get #framesMax(): number {
    return this.#options.framesMax ?? FRAMES_MAX
  }

  async #keepAlive(): Promise<void> {
    const { clock, pingMs = PING_MS, silentMs = SILENT_MS, onPing = () => this.#socket.ping() } = this.#options
    const { signal } = this.#over
    while (!signal.aborted) {
      await clock.sleep(pingMs, signal)
      if (signal.aborted) return
      const silentForMs = clock.monotonicMs() - this.#lastFrameAtMs
      // A paused connection is silent because this end does not read.
      if (silentForMs > silentMs && !this.#socket.isPaused) return this.terminate(`silent for ${Math.round(silentForMs / 1000)} s`)
      if (this.isOpen) onPing(this)
    }
  }
}

/** One long connection: binary frames with events and callbacks, each of which is acknowledged once its message is durable. */
import { type Members, members, parsedOrUndefined } from '@sluice/kit/foreign-json'
import { proxyAgent } from '@sluice/kit/proxy'
import { AppError, type Clock, errorText, type Logger } from '@sluice/sdk'
import type { RawData, WebSocket } from 'ws'
import { Fragments } from './fragments.ts'
import { CONTROL, DATA, decodeFrame, encodeFrame, type Frame, headerOf } from './frame.ts'

/** The times that the platform demands of its clients, in seconds. */
export interface ClientConfig {
  /** The pause between two pings. */
  readonly pingSecs: number
  /** Clients that lose their connection at once come back within this time, each after a random part of it. */
  readonly reconnectNonceSecs: number
  /** The pause after an attempt that failed. */
  readonly reconnectIntervalSecs: number
}

export interface SocketEvents {
  /** Something arrived. */
  onTraffic(): void
  /** Handles an event, in the order of arrival. It is acknowledged if the promise resolves; otherwise the platform sends it again. */
  onEvent(envelope: Members): Promise<void>
  onConfig(config: ClientConfig): void
}

export interface SocketOptions {
  readonly url: string
  /** The number of the service, from the address. */
  readonly service: number
  readonly config: ClientConfig
  readonly clock: Clock
  readonly log: Logger
  readonly events: SocketEvents
  readonly signal: AbortSignal
}

/** `closed`: the platform ended the connection in the regular way. `broken`: it broke, or fell silent. */
export type Ending = 'closed' | 'broken'

export const DEFAULT_CONFIG: ClientConfig = { pingSecs: 120, reconnectNonceSecs: 30, reconnectIntervalSecs: 120 }

const HANDSHAKE_MS = 15_000
/** The connection is dead if nothing arrives within this time after a ping of the platform's kind. */
const PONG_MS = 30_000
/** Pings of the WebSocket protocol notice a dead connection much earlier, on a connection whose other end has answered one. */
const PROTOCOL_PING_MS = 15_000
const SILENCE_MS = 40_000
const PING_SECS_MIN = 5
/** With the wait for a pong, a silent connection ends within five minutes. */
const PING_SECS_MAX = 240
const CLOSE_MS = 1000
const FRAME_BYTES_MAX = 4 * 1024 * 1024
const OK = 200
const FAILED = 500
/** Statuses of a refused handshake, in the header of the answer. */
const HANDSHAKE_FORBIDDEN = ['403', '514']

export class LongConnection {
  readonly #socket: WebSocket
  readonly #options: SocketOptions
  readonly #fragments: Fragments
  readonly #closed = new AbortController()
  readonly #opened = Promise.withResolvers<void>()
  readonly #ending = Promise.withResolvers<Ending>()
  #config: ClientConfig
  #lastFrameAtMs: number
  #answersPings = false
  #refused: AppError | undefined
  #problem = ''

  private constructor(socket: WebSocket, options: SocketOptions) {
    this.#socket = socket
    this.#options = options
    this.#config = options.config
    this.#fragments = new Fragments(options.clock)
    this.#lastFrameAtMs = options.clock.monotonicMs()
    this.#observe()
  }

  /** Connects. Throws `unavailable`, and `forbidden` if the platform refuses the app. The connection closes when the signal aborts. */
  static async open(options: SocketOptions): Promise<LongConnection> {
    const { WebSocket } = await import('ws')
    const agent = proxyAgent(new URL(options.url))
    const limits = { handshakeTimeout: HANDSHAKE_MS, maxPayload: FRAME_BYTES_MAX, perMessageDeflate: false }
    const socket = new WebSocket(options.url, { ...limits, ...(agent && { agent }) })
    const connection = new LongConnection(socket, options)
    await connection.#opened.promise
    void connection.#keepAlive()
    void connection.#watch()
    return connection
  }

  /** Resolves once the connection has ended. */
  get ending(): Promise<Ending> {
    return this.#ending.promise
  }

  get isOpen(): boolean {
    return this.#socket.readyState === this.#socket.OPEN
  }

  close(): void {
    this.#socket.close(1000)
    void this.#options.clock.sleep(CLOSE_MS, this.#closed.signal).then(() => this.#socket.terminate())
  }

  #observe(): void {
    const { signal } = this.#options
    const close = () => this.close()
    this.#socket.on('message', (data, isBinary) => {
      this.#alive()
      if (isBinary) this.#onFrame(data)
    })
    this.#socket.on('ping', () => this.#alive())
    this.#socket.on('pong', () => {
      this.#answersPings = true
      this.#alive()
    })
    this.#socket.once('open', () => this.#opened.resolve())
    this.#socket.once('unexpected-response', (_request, response) => {
      const { 'handshake-status': status = '', 'handshake-msg': message = '' } = response.headers
      const said = `workchat refused the connection (${response.statusCode}${status === '' ? '' : `, ${status} ${message}`})`
      this.#refused = new AppError(HANDSHAKE_FORBIDDEN.includes(String(status)) ? 'forbidden' : 'unavailable', said)
      response.resume()
      this.#socket.terminate()
    })
    // The `close` event follows.
    this.#socket.on('error', (error) => {
      this.#problem = ` (${errorText(error)})`
    })
    this.#socket.once('close', (code) => {
      signal.removeEventListener('abort', close)
      this.#closed.abort()
      this.#opened.reject(this.#refused ?? new AppError('unavailable', `The connection to workchat was not opened${this.#problem}`))
      // 1006: without a closing handshake.
      this.#ending.resolve(code === 1006 ? 'broken' : 'closed')
    })
    this.#opened.promise.catch(() => undefined)
    signal.addEventListener('abort', close, { once: true })
    if (signal.aborted) close()
  }

  #alive(): void {
    this.#lastFrameAtMs = this.#options.clock.monotonicMs()
    this.#options.events.onTraffic()
  }

  #onFrame(data: RawData): void {
    const { log } = this.#options
    try {
      const frame = decodeFrame(bytesOf(data))
      if (frame.method === CONTROL) this.#onControl(frame)
      else if (frame.method === DATA) this.#onData(frame)
    } catch (error) {
      log.warn('frame of workchat not understood', { error: errorText(error) })
    }
  }

  /** A pong may bring a new configuration. */
  #onControl(frame: Frame): void {
    if (headerOf(frame, 'type') !== 'pong' || !frame.payload?.length) return
    this.#config = clientConfigOf(members(parsedOrUndefined(frame.payload)), this.#config)
    this.#options.events.onConfig(this.#config)
  }

  /** Throws for a part of an event that cannot be joined. */
  #onData(frame: Frame): void {
    const [sum, seq] = [headerOf(frame, 'sum'), headerOf(frame, 'seq')]
    const payload = this.#fragments.add({
      messageId: headerOf(frame, 'message_id'),
      sum: sum === '' ? 1 : Number(sum),
      seq: seq === '' ? 0 : Number(seq),
      payload: frame.payload ?? new Uint8Array(),
    })
    if (payload) void this.#take(frame, payload)
  }

  async #take(frame: Frame, payload: Uint8Array): Promise<void> {
    const { clock, events } = this.#options
    const startedMs = clock.monotonicMs()
    // The payload of a callback and of an event is the same JSON as in a request of the webhook mode, without encryption.
    const code = await events.onEvent(members(parsedOrUndefined(payload))).then(
      () => OK,
      () => FAILED,
    )
    if (!this.isOpen) return
    const spentMs = String(Math.max(0, Math.round(clock.monotonicMs() - startedMs)))
    const headers = [...frame.headers, { key: 'biz_rt', value: spentMs }]
    this.#socket.send(encodeFrame({ ...frame, headers, payload: Buffer.from(JSON.stringify({ code })) }))
  }

  /** Sends pings, the first at once, and terminates a connection whose other end disappeared without closing it. */
  async #keepAlive(): Promise<void> {
    const { clock, service } = this.#options
    const { signal } = this.#closed
    const ping: Frame = { seqId: 0n, logId: 0n, service, method: CONTROL, headers: [{ key: 'type', value: 'ping' }] }
    while (!signal.aborted) {
      const pingedAtMs = clock.monotonicMs()
      if (this.isOpen) this.#socket.send(encodeFrame(ping))
      await clock.sleep(PONG_MS, signal)
      if (signal.aborted) return
      if (this.#lastFrameAtMs < pingedAtMs) return this.#socket.terminate()
      const pauseMs = Math.min(Math.max(this.#config.pingSecs, PING_SECS_MIN), PING_SECS_MAX) * 1000
      if (pauseMs > PONG_MS) await clock.sleep(pauseMs - PONG_MS, signal)
    }
  }

  /** Terminates a silent connection early. */
  async #watch(): Promise<void> {
    const { clock } = this.#options
    const { signal } = this.#closed
    while (!signal.aborted) {
      if (this.isOpen) this.#socket.ping()
      await clock.sleep(PROTOCOL_PING_MS, signal)
      const isSilent = clock.monotonicMs() - this.#lastFrameAtMs > SILENCE_MS
      if (!signal.aborted && this.#answersPings && isSilent) return this.#socket.terminate()
    }
  }
}

/** Reads a configuration of the platform; members that are missing or impossible stay as they are in `known`. */
export function clientConfigOf(json: Members, known: ClientConfig): ClientConfig {
  const secs = (value: unknown, otherwise: number): number =>
    typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : otherwise
  return {
    pingSecs: secs(json.PingInterval, known.pingSecs),
    reconnectNonceSecs: secs(json.ReconnectNonce, known.reconnectNonceSecs),
    reconnectIntervalSecs: secs(json.ReconnectInterval, known.reconnectIntervalSecs),
  }
}

/** The socket is never asked for another form of data. */
function bytesOf(data: RawData): Uint8Array {
  if (data instanceof Uint8Array) return data
  throw new RangeError('the frame has no bytes')
}

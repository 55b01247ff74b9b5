/** One connection to a server: lines in both directions, and the silence after which the connection is dead. */
import type { Socket } from 'node:net'
import { AppError, type Clock, errorText } from '@sluice/sdk'
import type { IrcConfig } from './config.ts'
import { type Line, LineSplitter, parseLine } from './wire.ts'

const CONNECT_MS = 15_000
const QUIT_MS = 1000
const LOOK_MS = 5000
/** After this silence the client asks for a sign of life. */
const PING_MS = 30_000
const DEAD_MS = 75_000

export class Link {
  readonly #socket: Socket
  readonly #clock: Clock
  readonly #splitter = new LineSplitter()
  readonly #handlers = new Set<(line: Line) => void>()
  readonly #closed = new AbortController()
  readonly #hasClosed = Promise.withResolvers<AppError>()
  #reason = 'by the server'
  #lastLineMs: number

  private constructor(socket: Socket, clock: Clock) {
    this.#socket = socket
    this.#clock = clock
    this.#lastLineMs = clock.monotonicMs()
    socket.on('data', (bytes) => this.#onData(bytes))
    socket.on('error', (error) => {
      this.#reason = `(${errorText(error)})`
    })
    socket.once('close', () => {
      this.#closed.abort()
      this.#hasClosed.resolve(new AppError('unavailable', `The connection to the irc server was closed ${this.#reason}`))
    })
  }

  /** Connects. Throws `unavailable`. The connection breaks when `signal` aborts. */
  static async open({ server, port, tls, verify_tls }: IrcConfig, clock: Clock, signal: AbortSignal): Promise<Link> {
    const [net, security] = await Promise.all([import('node:net'), import('node:tls')])
    const plain = { host: server, port, keepAlive: true, noDelay: true }
    const name = net.isIP(server) === 0 ? { servername: server } : {}
    const socket = tls ? security.connect({ ...plain, ...name, rejectUnauthorized: verify_tls }) : net.connect(plain)
    const link = new Link(socket, clock)
    const destroy = (): void => void socket.destroy()
    signal.addEventListener('abort', destroy, { once: true })
    if (signal.aborted) destroy()
    void link.closed.then(() => signal.removeEventListener('abort', destroy))
    const isOpen = Promise.withResolvers<'open'>()
    socket.once(tls ? 'secureConnect' : 'connect', () => isOpen.resolve('open'))
    const late = clock.sleep(CONNECT_MS, link.signal).then(() => new AppError('unavailable', 'The irc server did not answer in time'))
    const outcome = await Promise.race([isOpen.promise, link.closed, late])
    if (outcome !== 'open') {
      destroy()
      throw outcome
    }
    void link.#keepAlive()
    return link
  }

  /** Aborts when the connection has closed. */
  get signal(): AbortSignal {
    return this.#closed.signal
  }

  /** Resolves with the reason when the connection has closed. */
  get closed(): Promise<AppError> {
    return this.#hasClosed.promise
  }

  /** Calls `handler` for each line from now on. Returns a function that ends it. */
  onLine(handler: (line: Line) => void): () => void {
    this.#handlers.add(handler)
    return () => void this.#handlers.delete(handler)
  }

  /** Sends a line. Control characters become blanks, so that no text begins another command. */
  send(line: string): void {
    if (!this.signal.aborted) this.#socket.write(`${line.replaceAll(/\p{Cc}/gu, ' ')}\r\n`)
  }

  /** Reads no more until `resume`, so that the server keeps what cannot be stored yet. */
  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#lastLineMs = this.#clock.monotonicMs()
    this.#socket.resume()
  }

  /** Says goodbye and ends the connection. */
  quit(): void {
    this.send('QUIT :Sluice stops')
    this.#socket.destroySoon()
    void this.#clock.sleep(QUIT_MS, this.signal).then(() => this.#socket.destroy())
  }

  break(reason: string): void {
    this.#reason = reason
    this.#socket.destroy()
  }

  #onData(bytes: Buffer): void {
    this.#lastLineMs = this.#clock.monotonicMs()
    const lines = this.#splitter.take(bytes)
    if (!lines) return void this.break('because of a line that is too long')
    for (const text of lines) {
      const line = parseLine(text)
      if (!line) continue
      if (line.command === 'PING') this.send(`PONG :${line.params.at(-1) ?? ''}`)
      // A server says why it closes a connection, such as a ban or too many connections.
      if (line.command === 'ERROR') this.#reason = `by the server: ${(line.params.at(-1) ?? '').slice(0, 200)}`
      for (const handler of [...this.#handlers]) handler(line)
    }
  }

  async #keepAlive(): Promise<void> {
    while (!this.signal.aborted) {
      await this.#clock.sleep(LOOK_MS, this.signal)
      const silentMs = this.#socket.isPaused() ? 0 : this.#clock.monotonicMs() - this.#lastLineMs
      if (silentMs >= DEAD_MS) this.break('because it was silent')
      else if (silentMs >= PING_MS) this.send('PING :alive')
    }
  }
}

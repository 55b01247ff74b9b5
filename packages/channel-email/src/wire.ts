/** A connection to a mail server: TLS from the start or later, bytes in both directions, and the reason why it ended. */
import type { Socket } from 'node:net'
import { signalScope } from '@sluice/kit'
import { AppError, type Clock, errorText } from '@sluice/sdk'
import { closedError, openSocket } from './open-socket.ts'
import type { MailServer } from './settings.ts'

const CONNECT_MS = 20_000
const END_MS = 1000

export class Wire {
  readonly #server: MailServer
  readonly #name: string
  readonly #clock: Clock
  readonly #closed = new AbortController()
  readonly #hasClosed = Promise.withResolvers<AppError>()
  #socket: Socket
  #reason = ''
  /** Bytes that arrived before anything took them. */
  readonly #early: Buffer[] = []
  #take: (bytes: Buffer) => void = (bytes) => void this.#early.push(bytes)

  private constructor(server: MailServer, name: string, clock: Clock, socket: Socket) {
    this.#server = server
    this.#name = name
    this.#clock = clock
    this.#socket = socket
    this.#watch(socket)
  }

  /** Connects. `name` is for error texts. Throws `unavailable`. The connection breaks when `signal` aborts. */
  static async open(server: MailServer, name: string, clock: Clock, signal: AbortSignal): Promise<Wire> {
    const socket = await openSocket(server, name, clock, signal)
    const wire = new Wire(server, name, clock, socket)
    const destroy = (): void => wire.destroy('aborted')
    signal.addEventListener('abort', destroy, { once: true })
    if (signal.aborted) destroy()
    void wire.closed.then(() => signal.removeEventListener('abort', destroy))
    return wire
  }

  /** Aborts when the connection has closed. */
  get signal(): AbortSignal {
    return this.#closed.signal
  }

  /** Resolves with the reason when the connection has closed. */
  get closed(): Promise<AppError> {
    return this.#hasClosed.promise
  }

  /** Passes the bytes that arrive to `take`, instead of to an earlier one. */
  onBytes(take: (bytes: Buffer) => void): void {
    this.#take = take
    for (const bytes of this.#early.splice(0)) take(bytes)
  }

  /** Resolves when the bytes have left the process, or the connection has closed. */
  async write(bytes: string | Uint8Array): Promise<void> {
    if (this.signal.aborted) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#socket.write(bytes, (error) => {
      // After an error the connection closes, for a reason that `closed` tells.
      if (!error) resolve()
    })
    await Promise.race([promise, this.closed])
  }

  /** Encrypts the connection. The caller has made sure that no byte of the server is left unread. Throws `unavailable`. */
  async startTls(): Promise<void> {
    const [net, tls] = await Promise.all([import('node:net'), import('node:tls')])
    const { host, verifyTls } = this.#server
    const plain = this.#socket
    plain.removeAllListeners('data')
    const named = net.isIP(host) === 0 ? { servername: host } : { host }
    this.#socket = tls.connect({ socket: plain, ...named, rejectUnauthorized: verifyTls })
    this.#watch(this.#socket)
    await this.#secured()
  }

  /** Ends the connection at once. The first reason counts. */
  destroy(reason: string): void {
    this.#reason ||= reason
    this.#socket.destroy()
  }

  /** Writes what is left, and ends the connection. */
  end(): void {
    this.#reason ||= 'ended'
    this.#socket.destroySoon()
    void this.#clock.sleep(END_MS, this.signal).then(() => this.#socket.destroy())
  }

  async #secured(): Promise<void> {
    const isOpen = Promise.withResolvers<'open'>()
    this.#socket.once('secureConnect', () => isOpen.resolve('open'))
    using scope = signalScope([this.signal])
    const late = this.#clock.sleep(CONNECT_MS, scope.signal).then(() => new AppError('unavailable', `${this.#name} did not answer in time`))
    const outcome = await Promise.race([isOpen.promise, this.closed, late])
    if (outcome === 'open') return
    this.destroy('no connection in time')
    throw outcome
  }

  #watch(socket: Socket): void {
    socket.on('data', (bytes: Buffer) => this.#take(bytes))
    socket.on('error', (error) => {
      this.#reason ||= errorText(error)
    })
    socket.once('close', () => {
      this.#hasClosed.resolve(closedError(this.#name, this.#reason))
      this.#closed.abort()
    })
  }
}

/**
 * One connection to Mattermost's WebSocket. Events are numbered from 0 within the life of a connection id; a client that names the id and
 * the next number gets the events that it missed, as long as the server has them (about five minutes, and 128 events that were sent).
 * After such a resumption the server says no hello, so the answer to a ping tells that it has happened.
 */

import { type Members, members, text } from '@sluice/kit/foreign-json'
import { FrameSocket } from '@sluice/kit/frame-socket'
import { AppError, type Clock } from '@sluice/sdk'

/** A connection that can be resumed. */
export interface Resumption {
  readonly connectionId: string
  /** The number of the next event, which is greater than 0. */
  readonly next: number
}

export interface SocketOutcome {
  /** Why the connection ended. */
  readonly detail: string
  /** Where another one can continue. Absent if some events must be read from the conversations. */
  readonly resumption?: Resumption
}

export interface SocketEvents {
  /** The server has accepted the connection, and may have forgotten the one that is to be resumed. */
  onOpen(): void
  /** The server has authenticated the connection. */
  onReady(): void
  /** The server began a new connection, and does not have the events of an earlier one. */
  onHello(): void
  onEvent(event: string, data: Members): void
}

export interface SocketOptions {
  readonly url: string
  readonly token: string
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly resumption: Resumption | undefined
  /** Returns the number of a request. Numbers are never used again, because answers may arrive on the next connection. */
  nextRequest(): number
}

const READY_MS = 15_000
const PING_MS = 15_000
/** A ping is answered at once, so the connection is dead after this time without a frame. */
const SILENT_MS = 20_000

export class MattermostSocket {
  readonly #options: SocketOptions
  readonly #events: SocketEvents
  readonly #ready = Promise.withResolvers<void>()
  #connectionId: string
  #next: number
  #isOver = false

  constructor(options: SocketOptions, events: SocketEvents) {
    this.#options = options
    this.#events = events
    this.#connectionId = options.resumption?.connectionId ?? ''
    this.#next = options.resumption?.next ?? 0
  }

  /** Connects, and resolves when the connection has ended. Throws `unavailable` if it was never ready. */
  async run(): Promise<SocketOutcome> {
    const { clock, signal, token } = this.#options
    const socket = await FrameSocket.open(this.#address(), {
      platform: 'mattermost',
      clock,
      signal,
      // Only a connection that is authenticated by a header can be resumed.
      headers: { authorization: `Bearer ${token}` },
      pingMs: PING_MS,
      silentMs: SILENT_MS,
      onFrame: (frame, from) => this.#onFrame(frame, from),
      onPing: (to) => this.#request(to, 'ping'),
    })
    this.#events.onOpen()
    // A proxy may have removed the header. The server ignores the challenge if it has not.
    this.#request(socket, 'authentication_challenge', { token })
    this.#request(socket, 'ping')
    await this.#untilReady(socket)
    this.#events.onReady()
    const { detail } = await socket.ended
    const canResume = !this.#isOver && this.#connectionId !== '' && this.#next > 0
    return { detail, ...(canResume && { resumption: { connectionId: this.#connectionId, next: this.#next } }) }
  }

  #address(): string {
    const { url, resumption } = this.#options
    const address = new URL(url.replace(/^http/i, 'ws'))
    if (resumption) {
      address.searchParams.set('connection_id', resumption.connectionId)
      address.searchParams.set('sequence_number', String(resumption.next))
    }
    return address.href
  }

  async #untilReady(socket: FrameSocket): Promise<void> {
    const waiting = new AbortController()
    const late = this.#options.clock.sleep(READY_MS, waiting.signal).then(() => {
      if (!waiting.signal.aborted) socket.terminate('not authenticated in time')
      return socket.ended
    })
    const end = await Promise.race([this.#ready.promise, socket.ended, late])
    waiting.abort()
    if (end) throw new AppError('unavailable', `The connection to mattermost ended before it was ready ${end.detail}`.trim())
  }

  #onFrame(frame: Members, socket: FrameSocket): undefined {
    const { event, data, seq, status } = frame
    if (text(event) !== '') this.#onEvent(text(event), members(data), seq, socket)
    else if (status === 'OK' && text(members(data).text) === 'pong') this.#ready.resolve()
    // The server keeps a connection open whose token was revoked, and only stops to send events.
    else if (status === 'FAIL') this.#forget(socket, 'no longer authenticated')
  }

  #onEvent(event: string, data: Members, seq: unknown, socket: FrameSocket): void {
    if (event === 'hello') {
      this.#connectionId = text(data.connection_id)
      this.#next = 0
    }
    // After the end of a connection, frames that were under way may still arrive.
    if (this.#isOver) return
    const isNext = seq === this.#next
    this.#next += 1
    if (!isNext) this.#forget(socket, 'an event was skipped')
    else if (event === 'hello') this.#events.onHello()
    else this.#events.onEvent(event, data)
  }

  /** Ends a connection whose missing events another one must read from the conversations. */
  #forget(socket: FrameSocket, problem: string): void {
    this.#isOver = true
    socket.terminate(problem)
  }

  #request(socket: FrameSocket, action: string, data?: object): void {
    socket.send({ seq: this.#options.nextRequest(), action, ...(data && { data }) })
  }
}

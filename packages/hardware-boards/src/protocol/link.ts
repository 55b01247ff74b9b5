/** The line protocol over one open port to one board: one request at a time, each matched to its own reply. */
import { randomInt } from 'node:crypto'
import { AppError, type Clock } from '@sluice/sdk'
import type { Port } from '../devices.ts'
import { type Frame, readFrame } from './frame.ts'
import { createLineDecoder } from './line-decoder.ts'

/** The longest time a request takes, its repetitions included. */
export const REQUEST_MS = 5000
/** A repeatable request is sent again after this time, because noise may have garbled it or its reply. */
export const ASK_AGAIN_MS = 1500
export const PING_MS = 300
/** Many boards restart when their port is opened, and are silent for up to two seconds. */
export const PINGS_MAX = 10

/**
 * `numbered`: `{"id","cmd","args"}`, answered by `{"id","ok","result"}`. `bare`: `{"cmd","params"}`, answered by
 * `{"ok","data"}`.
 */
export type Dialect = 'numbered' | 'bare'

export interface RequestOptions {
  readonly signal: AbortSignal
  /** True when the board may carry out the request twice without harm, as for a read. */
  readonly repeatable: boolean
}

export interface LinkListener {
  /** Called in order with each signal that the board sends. Must not throw. */
  readonly onSignal?: (signal: string, value: unknown) => void
  readonly onClose?: () => void
}

type Reply = Extract<Frame, { kind: 'reply' }>

interface Exchange {
  readonly untilMs: number
  readonly isAnswer: (reply: Reply) => boolean
  readonly resolve: (reply: Reply | undefined) => void
  readonly reject: (error: unknown) => void
}

const FIRMWARE_HINT = 'firmware/README.md of the source says how to install it'

export class Link {
  readonly #port: Port
  readonly #name: string
  readonly #clock: Clock
  readonly #listener: LinkListener
  readonly #stopReading: () => void
  #dialect: Dialect | undefined
  #isClosed = false
  #exchange: Exchange | undefined
  #wakesAtMs = Number.POSITIVE_INFINITY
  /** Starts at random: replies to requests from before the port was opened, perhaps of another program, must not match. */
  #lastId = randomInt(1_000_000)
  readonly #received = { echoes: 0, noise: 0, bare: 0 }
  /** Unanswered pings of the last `hello`. Without numbers, a late reply to one looks like the reply to a request. */
  #pingsPending = 0

  /** `name` is the alias of the board, for messages. */
  constructor(port: Port, name: string, clock: Clock, listener: LinkListener = {}) {
    this.#port = port
    this.#name = name
    this.#clock = clock
    this.#listener = listener
    this.#stopReading = port.onData(createLineDecoder((line) => this.#onLine(line)))
    port.onClose(() => this.#onClose())
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  close(): Promise<void> {
    return this.#port.close()
  }

  /** Finds out which dialect the board speaks. Throws `upstream_timeout` when it answers none of `pings`. */
  async hello(signal: AbortSignal, pings = PINGS_MAX, untilMs = Number.POSITIVE_INFINITY): Promise<void> {
    this.#dialect = undefined
    this.#pingsPending = 0
    for (let ping = 0; ping < pings && this.#clock.monotonicMs() < untilMs; ping++) {
      const id = this.#nextId()
      // A board that has replied without a number also gets pings without one.
      const style: Dialect = this.#received.bare > 0 && ping % 2 === 1 ? 'bare' : 'numbered'
      const isAnswer = (reply: Reply) => reply.id === id || (reply.id === null && isPong(reply))
      const ms = Math.min(PING_MS, untilMs - this.#clock.monotonicMs())
      // The leading newline ends a line that the board has read in part.
      const reply = await this.#send(`\n${lineOf(style, id, 'ping', {})}`, isAnswer, ms, signal)
      if (!reply) {
        this.#pingsPending++
        continue
      }
      this.#dialect = reply.id === null ? 'bare' : 'numbered'
      return
    }
    throw this.#silence(pings * PING_MS)
  }

  /**
   * Returns the result as the board sent it. Throws `upstream` when the board refuses, `upstream_timeout` when it does not
   * answer, `unavailable` when it is unplugged, and `aborted`. The caller must wait for one request before the next.
   */
  async request(command: string, args: Readonly<Record<string, unknown>>, { signal, repeatable }: RequestOptions): Promise<unknown> {
    const endMs = this.#clock.monotonicMs() + REQUEST_MS
    const ids = new Set<string>()
    const isAnswer = (reply: Reply) =>
      this.#dialect === 'bare' ? reply.id === null && !this.#isLatePong(reply) : reply.id !== null && ids.has(reply.id)
    for (let attempt = 0; ; attempt++) {
      if (this.#dialect === undefined) await this.hello(signal, PINGS_MAX, endMs)
      const leftMs = endMs - this.#clock.monotonicMs()
      if (leftMs <= 0) throw this.#silence(REQUEST_MS)
      const id = this.#nextId()
      ids.add(id)
      const line = lineOf(this.#dialect ?? 'numbered', id, command, args)
      const waitMs = repeatable ? Math.min(leftMs, ASK_AGAIN_MS) : leftMs
      const reply = await this.#send(attempt > 0 ? `\n${line}` : line, isAnswer, waitMs, signal).catch((error: unknown) => {
        this.#forgetBareDialect()
        throw error
      })
      if (reply) {
        if (!reply.ok) throw new AppError('upstream', `${this.#name} refuses: ${reply.error || 'it gives no reason'}`)
        return reply.value
      }
      this.#forgetBareDialect()
      if (!repeatable) throw this.#silence(REQUEST_MS, '; it is not known whether the request was carried out')
    }
  }

  /** Writes a line and waits for its answer; resolves to undefined when none arrives in time. */
  async #send(line: string, isAnswer: Exchange['isAnswer'], ms: number, signal: AbortSignal): Promise<Reply | undefined> {
    if (this.#isClosed) throw this.#disconnected()
    if (signal.aborted) throw aborted()
    const { promise, resolve, reject } = Promise.withResolvers<Reply | undefined>()
    const abort = () => reject(aborted())
    signal.addEventListener('abort', abort, { once: true })
    const exchange: Exchange = { untilMs: this.#clock.monotonicMs() + ms, isAnswer, resolve, reject }
    this.#exchange = exchange
    this.#wakeAt(exchange.untilMs)
    this.#port.write(Buffer.from(line)).catch(reject)
    try {
      return await promise
    } finally {
      signal.removeEventListener('abort', abort)
      if (this.#exchange === exchange) this.#exchange = undefined
    }
  }

  /** Shares one timer between many requests: a timer for each would cost more than the rest of a request. */
  #wakeAt(untilMs: number): void {
    if (this.#wakesAtMs <= untilMs) return
    this.#wakesAtMs = untilMs
    void this.#clock.sleep(Math.max(1, untilMs - this.#clock.monotonicMs())).then(() => {
      if (this.#wakesAtMs !== untilMs) return
      this.#wakesAtMs = Number.POSITIVE_INFINITY
      if (!this.#exchange) return
      if (this.#exchange.untilMs <= this.#clock.monotonicMs()) this.#exchange.resolve(undefined)
      else this.#wakeAt(this.#exchange.untilMs)
    })
  }

  #onLine(line: string): void {
    const frame = readFrame(line)
    if (frame.kind === 'signal') this.#listener.onSignal?.(frame.signal, frame.value)
    else if (frame.kind === 'echo') this.#received.echoes++
    else if (frame.kind === 'noise') this.#received.noise += line === '' ? 0 : 1
    else {
      if (frame.id === null) this.#received.bare++
      if (this.#exchange?.isAnswer(frame)) this.#exchange.resolve(frame)
    }
  }

  #onClose(): void {
    this.#isClosed = true
    this.#stopReading()
    this.#exchange?.reject(this.#disconnected())
    this.#listener.onClose?.()
  }

  #nextId(): string {
    return String(++this.#lastId)
  }

  #isLatePong(reply: Reply): boolean {
    return isPong(reply) && this.#pingsPending-- > 0
  }

  /** Makes the next request begin with `hello`: without numbers, a late reply would pass for the reply to that request. */
  #forgetBareDialect(): void {
    if (this.#dialect === 'bare') this.#dialect = undefined
  }

  #disconnected(): AppError {
    return new AppError('unavailable', `${this.#name} is no longer connected`)
  }

  /** Returns the error for a board that does not answer, with the likely cause. */
  #silence(ms: number, more = ''): AppError {
    const why =
      this.#received.echoes > 0
        ? `; its line echoes what is sent, so no firmware that speaks the protocol is running: ${FIRMWARE_HINT}`
        : this.#received.noise > 0
          ? `; its output is not the line protocol: check its baud rate and its firmware; ${FIRMWARE_HINT}`
          : `; check that its firmware is installed; ${FIRMWARE_HINT}`
    return new AppError('upstream_timeout', `${this.#name} did not answer within ${ms / 1000} s${more}${why}`)
  }
}

const lineOf = (style: Dialect, id: string, command: string, args: unknown): string =>
  `${JSON.stringify(style === 'bare' ? { cmd: command, params: args } : { id, cmd: command, args })}\n`

/** True for a reply without a number that can only answer a ping. */
function isPong({ ok, value }: Reply): boolean {
  if (!ok) return false
  // Capabilities may name the firmware too, but they also list pins.
  return value === 'pong' || (typeof value === 'object' && value !== null && 'firmware' in value && !('gpio' in value))
}

const aborted = (): AppError => new AppError('aborted', 'The call was aborted')

/**
 * The pins of a board behind a bridge: one TCP connection per call, with one line of text such as `gpio_read 13` or
 * `gpio_write 13 1`.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { bridgeAddress } from '@sluice/hardware'
import { SerialQueue, signalScope } from '@sluice/kit'
import { AppError, type Clock, errorText } from '@sluice/sdk'
import { bitOf, type Capabilities } from '../protocol/answers.ts'
import { plainText } from '../protocol/frame.ts'
import { createLineDecoder } from '../protocol/line-decoder.ts'
import { type BoardLine, NO_CAPABILITIES } from './board-line.ts'

const CALLS_MAX = 64
const CONNECT_MS = 5000
const REPLY_MS = 3000
/** Limits the reply of a bridge that never ends its line. */
const REPLY_BYTES_MAX = 16_384

export class BridgeLine implements BoardLine {
  readonly #name: string
  readonly #address: string
  readonly #clock: Clock
  readonly #queue: SerialQueue
  readonly #closing = new AbortController()

  /** `name` is the alias of the board, for messages; `address` is `host:port`. */
  constructor(name: string, address: string, clock: Clock) {
    this.#name = name
    this.#address = address
    this.#clock = clock
    this.#queue = new SerialQueue({ name, tasksMax: CALLS_MAX })
  }

  async capabilities(): Promise<Capabilities> {
    return NO_CAPABILITIES
  }

  async read(pin: number, signal: AbortSignal): Promise<0 | 1> {
    return bitOf(this.#name, await this.#ask(`gpio_read ${pin}`, signal))
  }

  async write(pin: number, value: 0 | 1, signal: AbortSignal): Promise<void> {
    const reply = await this.#ask(`gpio_write ${pin} ${value}`, signal)
    if (!/^ok\b/i.test(reply)) throw new AppError('upstream', `${this.#name} answered ${JSON.stringify(plainText(reply))} instead of ok`)
  }

  async withPort(): Promise<never> {
    throw new AppError('invalid_request', `${this.#name} is behind a bridge, so it has no port`)
  }

  listen(): void {}

  async drop(): Promise<void> {}

  async close(): Promise<void> {
    this.#closing.abort()
  }

  #ask(line: string, called: AbortSignal): Promise<string> {
    return this.#queue.run(async () => {
      using either = signalScope([called, this.#closing.signal])
      const { signal } = either
      const where = bridgeAddress(this.#address)
      if (!where) throw new AppError('config_invalid', `${JSON.stringify(this.#address)} is not the address of a bridge; use host:port`)
      const socket = connect({ ...where })
      // Without this listener, an error between the two waits below would end the process.
      socket.on('error', () => undefined)
      try {
        await this.#within(CONNECT_MS, `${this.#name} does not answer at ${this.#address}`, signal, () => once(socket, 'connect'))
        const reply = await this.#within(REPLY_MS, `${this.#name} did not reply`, signal, () => replyOf(socket, `${line}\n`))
        if (/^error\b/i.test(reply))
          throw new AppError('upstream', `${this.#name} refuses: ${plainText(reply.replace(/^error:?\s*/i, ''))}`)
        return reply
      } finally {
        socket.destroy()
      }
    }, called)
  }

  /** Throws `upstream_timeout` with `late` after `ms`, `aborted`, and `unavailable` for any other error of `work`. */
  async #within<Result>(ms: number, late: string, signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    const over = new AbortController()
    const aborted = Promise.withResolvers<never>()
    const abort = () => aborted.reject(new AppError('aborted', 'The call was aborted'))
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    const timeout = this.#clock.sleep(ms, over.signal).then(() => {
      if (!over.signal.aborted) throw new AppError('upstream_timeout', `${late} within ${ms / 1000} s`)
      return aborted.promise
    })
    try {
      return await Promise.race([work(), timeout, aborted.promise])
    } catch (cause) {
      if (cause instanceof AppError) throw cause
      throw new AppError('unavailable', `${this.#name} cannot be reached at ${this.#address}: ${errorText(cause)}`, { cause })
    } finally {
      over.abort()
      signal.removeEventListener('abort', abort)
    }
  }
}

function replyOf(socket: Socket, request: string): Promise<string> {
  const reply = Promise.withResolvers<string>()
  let bytes = 0
  const decode = createLineDecoder((line) => reply.resolve(line.trim()))
  socket.on('data', (chunk) => {
    bytes += chunk.length
    if (bytes > REPLY_BYTES_MAX) reply.reject(new Error('its reply does not end'))
    else decode(chunk)
  })
  socket.once('error', reply.reject)
  // A bridge may close the connection instead of sending the newline.
  socket.once('end', () => bytes > 0 && decode(Buffer.from('\n')))
  socket.once('close', () => reply.reject(new Error('it closed the connection')))
  socket.write(request)
  return reply.promise
}

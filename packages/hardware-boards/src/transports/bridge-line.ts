/** The pins of a board behind a bridge: one TCP connection and one line of text a call, `gpio_read 13` or `gpio_write 13 1`. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { bridgeAddress } from '@sluice/hardware'
import { signalScope } from '@sluice/kit'
import { AppError, type Clock, errorText } from '@sluice/sdk'
import { bitOf } from '../protocol/answers.ts'
import { plainText } from '../protocol/frame.ts'
import { createLineDecoder } from '../protocol/line-decoder.ts'
import { type BoardLine, SAYS_NOTHING } from './board-line.ts'
import { createLane } from './lane.ts'

const CONNECT_MS = 5000
const REPLY_MS = 3000
/** Of a bridge that never ends its line. */
const REPLY_BYTES_MAX = 16_384

export interface BridgeLineOptions {
  readonly name: string
  /** As `bridgeAddress` takes it. */
  readonly address: string
  readonly clock: Clock
}

export function createBridgeLine({ name, address, clock }: BridgeLineOptions): BoardLine {
  const lane = createLane(name)
  const closing = new AbortController()

  const ask = (line: string, called: AbortSignal): Promise<string> =>
    lane.run(called, async () => {
      using either = signalScope([called, closing.signal])
      const { signal } = either
      const where = bridgeAddress(address)
      if (!where) throw new AppError('config_invalid', `${JSON.stringify(address)} is no address of a bridge`)
      const socket = connect({ ...where })
      // Each wait below has a listener of its own; an error between two of them must not end the process.
      socket.on('error', () => undefined)
      try {
        await within(CONNECT_MS, `${name} does not answer at ${address}`, signal, () => once(socket, 'connect'))
        const reply = await within(REPLY_MS, `${name} did not reply`, signal, () => replyOf(socket, `${line}\n`))
        if (/^error\b/i.test(reply)) throw new AppError('upstream', `${name} refuses: ${plainText(reply.replace(/^error:?\s*/i, ''))}`)
        return reply
      } finally {
        socket.destroy()
      }
    })

  const within = async <Result>(ms: number, what: string, signal: AbortSignal, work: () => Promise<Result>): Promise<Result> => {
    const over = new AbortController()
    const aborted = Promise.withResolvers<never>()
    const abort = () => aborted.reject(new AppError('aborted', 'The call was aborted'))
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    const late = clock.sleep(ms, over.signal).then(() => {
      if (!over.signal.aborted) throw new AppError('upstream_timeout', `${what} within ${ms / 1000} s`)
      return aborted.promise
    })
    try {
      return await Promise.race([work(), late, aborted.promise])
    } catch (cause) {
      if (cause instanceof AppError) throw cause
      throw new AppError('unavailable', `${name} cannot be reached at ${address}: ${errorText(cause)}`, { cause })
    } finally {
      over.abort()
      signal.removeEventListener('abort', abort)
    }
  }

  return {
    capabilities: async () => SAYS_NOTHING,
    read: async (pin, signal) => bitOf(name, await ask(`gpio_read ${pin}`, signal)),
    async write(pin, value, signal) {
      const reply = await ask(`gpio_write ${pin} ${value}`, signal)
      if (!/^ok\b/i.test(reply)) throw new AppError('upstream', `${name} answered ${JSON.stringify(plainText(reply))} instead of ok`)
    },
    withPort: async () => {
      throw new AppError('invalid_request', `${name} is behind a bridge: there is no port to it`)
    },
    listen: () => undefined,
    drop: async () => undefined,
    close: async () => closing.abort(),
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
  // A bridge may leave out the newline and close instead.
  socket.once('end', () => bytes > 0 && decode(Buffer.from('\n')))
  socket.once('close', () => reply.reject(new Error('it closed the connection')))
  socket.write(request)
  return reply.promise
}

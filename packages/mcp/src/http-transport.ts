/** The transport to a server at an address that the operator configured: streamable HTTP. */
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { AppError, type Clock } from '@sluice/sdk'
import type { Authorization } from './authorization.ts'
import type { ServerConfig } from './config.ts'
import { MESSAGE_BYTES_MAX } from './lines.ts'
import { Pace, readingPace, readingUnits } from './pace.ts'

/** A stream that the server ends is opened again when the server says, but no more often than this in a minute. */
const RECONNECTIONS_PER_MINUTE = 20
const MINUTE_MS = 60_000
const RECONNECTION_MS_MAX = 600_000
/** Requests at the same time, with the answers to questions of the server. */
const REQUESTS_MAX = 256
/** An event of a stream has a line with its data and an empty one, each of which ends with one or two characters. */
const ENDS_PER_EVENT = 4
const [LINE_FEED, CARRIAGE_RETURN] = [10, 13]

export interface HttpOptions {
  readonly url: string
  readonly headers: ServerConfig['headers']
  /** Absent when the operator configured an `Authorization` header. */
  readonly authorization: Authorization | undefined
  readonly fetch: typeof fetch
  readonly clock: Clock
}

/**
 * Only the configured headers and the tokens of the login at this server are sent: no credential of Sluice or of a client is passed on.
 * A redirect to another origin fails.
 */
export class HttpTransport extends StreamableHTTPClientTransport {
  endReason: string | undefined
  readonly #stopped: AbortController

  constructor({ url, headers, authorization, fetch: fetcher, clock }: HttpOptions) {
    const stopped = new AbortController()
    const stop = (reason: string) => {
      this.endReason ??= reason
      void this.close()
    }
    const reading = readingPace(clock)
    const reconnecting = new Pace({ clock, unitsMax: RECONNECTIONS_PER_MINUTE, periodMs: MINUTE_MS })
    let requests = 0
    super(new URL(url), {
      ...(authorization && { authProvider: authorization }),
      fetch: async (input, init) => {
        if (requests >= REQUESTS_MAX) throw new AppError('unavailable', `the server has not answered ${REQUESTS_MAX} requests`)
        requests += 1
        const response = await fetcher(input, init).finally(() => {
          requests -= 1
        })
        await authorization?.noticeRefusal(response)
        const wait = (units: number) => {
          const delayMs = reading.delayMs(units)
          return delayMs > 0 ? clock.sleep(delayMs, stopped.signal) : undefined
        }
        return bounded(response, { stop, wait })
      },
      reconnectionScheduler: (reconnect, delayMs) => {
        const ended = new AbortController()
        const waitMs = Math.min(Math.max(delayMs, reconnecting.delayMs()), RECONNECTION_MS_MAX)
        void clock.sleep(waitMs, ended.signal).then(() => !ended.signal.aborted && reconnect())
        return () => ended.abort()
      },
      requestInit: { headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.reveal().trim()])) },
    })
    this.#stopped = stopped
  }

  override close(): Promise<void> {
    this.#stopped.abort()
    return super.close()
  }
}

interface Bounds {
  /** Called with the reason when an answer is too long. */
  stop(reason: string): void
  /** Resolves when the next part of a stream may be read; undefined: at once. */
  wait(units: number): Promise<void> | undefined
}

/** Limits the bytes of an answer; in a stream of events, the bytes of each event and the pace. */
function bounded(response: Response, { stop, wait }: Bounds): Response {
  if (!response.body) return response
  const isStream = response.headers.get('content-type')?.includes('text/event-stream') ?? false
  let bytes = 0
  const limit = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      const end = isStream ? lastEventEnd(chunk) : -1
      bytes = end < 0 ? bytes + chunk.length : chunk.length - end
      if (bytes > MESSAGE_BYTES_MAX) {
        const reason = `a message has more than ${MESSAGE_BYTES_MAX} bytes`
        stop(reason)
        throw new Error(reason)
      }
      controller.enqueue(chunk)
      return isStream ? wait(readingUnits(chunk.length, lineEnds(chunk) / ENDS_PER_EVENT)) : undefined
    },
  })
  const { status, statusText, headers } = response
  const limited = new Response(response.body.pipeThrough(limit), { status, statusText, headers })
  // The client resolves redirects and errors against the address of the answer.
  Object.defineProperty(limited, 'url', { value: response.url })
  return limited
}

function lineEnds(chunk: Uint8Array): number {
  let count = 0
  for (const byte of chunk) if (byte === LINE_FEED || byte === CARRIAGE_RETURN) count += 1
  return count
}

/** Returns the index behind the last empty line; -1 without one. An empty line that two chunks share is found with the next event. */
function lastEventEnd(chunk: Uint8Array): number {
  const text = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
  return Math.max(text.lastIndexOf('\n\n'), text.lastIndexOf('\r\n\r\n'))
}

/** The transport to a server at an address that the operator configured: streamable HTTP. */
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { Authorization } from './authorization.ts'
import type { ServerConfig } from './config.ts'
import { MESSAGE_BYTES_MAX } from './lines.ts'

export interface HttpOptions {
  readonly url: string
  readonly headers: ServerConfig['headers']
  /** Absent when the operator configured an `Authorization` header. */
  readonly authorization: Authorization | undefined
  readonly fetch: typeof fetch
}

/**
 * Only the configured headers and the tokens of the login at this server are sent: no credential of Sluice or of a client is passed on.
 * A redirect to another origin fails.
 */
export class HttpTransport extends StreamableHTTPClientTransport {
  endReason: string | undefined

  constructor({ url, headers, authorization, fetch: fetcher }: HttpOptions) {
    const stop = (reason: string) => {
      this.endReason = reason
      void this.close()
    }
    super(new URL(url), {
      ...(authorization && { authProvider: authorization }),
      fetch: async (input, init) => {
        const response = await fetcher(input, init)
        await authorization?.noticeRefusal(response)
        return bounded(response, stop)
      },
      requestInit: { headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.reveal().trim()])) },
    })
  }
}

/** Limits the bytes of an answer; in a stream of events, the bytes of each event. Calls `stop` with the reason when there are more. */
function bounded(response: Response, stop: (reason: string) => void): Response {
  if (!response.body) return response
  const isStream = response.headers.get('content-type')?.includes('text/event-stream') ?? false
  let bytes = 0
  const limit = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      const end = isStream ? lastEventEnd(chunk) : -1
      bytes = end < 0 ? bytes + chunk.length : chunk.length - end
      if (bytes <= MESSAGE_BYTES_MAX) return controller.enqueue(chunk)
      const reason = `a message has more than ${MESSAGE_BYTES_MAX} bytes`
      controller.error(new Error(reason))
      stop(reason)
    },
  })
  const { status, statusText, headers } = response
  const limited = new Response(response.body.pipeThrough(limit), { status, statusText, headers })
  // The client resolves redirects and errors against the address of the answer.
  Object.defineProperty(limited, 'url', { value: response.url })
  return limited
}

/** Returns the index behind the last empty line; -1 without one. An empty line that two chunks share is found with the next event. */
function lastEventEnd(chunk: Uint8Array): number {
  const text = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
  return Math.max(text.lastIndexOf('\n\n'), text.lastIndexOf('\r\n\r\n'))
}

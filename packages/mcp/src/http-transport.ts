/** The transport to a server at an address that the operator configured: streamable HTTP. */
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { ServerConfig } from './config.ts'
import { MESSAGE_BYTES_MAX } from './lines.ts'

/** Only the configured headers are sent: no credential of Sluice or of a client is passed on. A redirect to another origin fails. */
export const httpTransport = (
  url: string,
  { headers }: Pick<ServerConfig, 'headers'>,
  fetcher: typeof fetch,
): StreamableHTTPClientTransport =>
  new StreamableHTTPClientTransport(new URL(url), {
    fetch: async (input, init) => bounded(await fetcher(input, init)),
    requestInit: { headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.reveal().trim()])) },
  })

/** Limits the bytes of an answer; in a stream of events, the bytes of each event. */
function bounded(response: Response): Response {
  if (!response.body) return response
  const isStream = response.headers.get('content-type')?.includes('text/event-stream') ?? false
  let bytes = 0
  const limit = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      const end = isStream ? lastEventEnd(chunk) : -1
      bytes = end < 0 ? bytes + chunk.length : chunk.length - end
      if (bytes > MESSAGE_BYTES_MAX) controller.error(new Error(`a message has more than ${MESSAGE_BYTES_MAX} bytes`))
      else controller.enqueue(chunk)
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

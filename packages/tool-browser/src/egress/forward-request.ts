/** One plain HTTP request through the egress proxy, on a connection of its own. */
import { type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse, request as send } from 'node:http'
import { pinnedLookup } from '@sluice/kit'
import { connectHost } from './connect-host.ts'
import type { Target } from './egress-proxy.ts'

const SILENT_MS_MAX = 120_000
/** Of one connection, so of the proxy's two and never the other's. */
const HOP_BY_HOP = [
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization'],
  ...['te', 'trailer', 'transfer-encoding', 'upgrade'],
]
const STRANGE = 'did not answer as a site does'

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  refuse(status: number, text: string): void
}

export function forwardRequest({ url, addresses }: Target, { request, response, refuse }: Exchange): void {
  const outgoing = send({
    host: connectHost(url),
    port: url.port || 80,
    path: url.pathname + url.search,
    method: request.method,
    headers: { ...endToEnd(request), host: url.host },
    lookup: pinnedLookup(addresses),
    agent: false,
    timeout: SILENT_MS_MAX,
  })
  outgoing.on('timeout', () => outgoing.destroy(new Error('no answer in time')))
  const fail = (text: string) => (response.headersSent ? void response.destroy() : refuse(502, `${url.host} ${text}`))
  outgoing.on('error', () => fail('did not answer'))
  // An upgrade nobody asked for is neither an answer nor an error.
  outgoing.on('upgrade', (_incoming, socket) => {
    socket.destroy()
    fail(STRANGE)
  })
  outgoing.on('response', (incoming) => {
    incoming.on('error', () => response.destroy())
    const { statusCode = 0 } = incoming
    // A site that speaks as if it were the proxy shall not be believed; below 100 there is no answer to write.
    if (statusCode === 407 || statusCode < 100) {
      incoming.destroy()
      return fail(statusCode === 407 ? "asked for what is the proxy's alone" : STRANGE)
    }
    response.writeHead(statusCode, endToEnd(incoming))
    incoming.pipe(response)
  })
  response.on('close', () => outgoing.destroy())
  request.pipe(outgoing)
}

/** The headers that are the site's and the browser's business; of a request with a body, node says how it is sent. */
function endToEnd({ headersDistinct, headers }: IncomingMessage): OutgoingHttpHeaders {
  const named = (headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase())
  return Object.fromEntries(
    Object.entries(headersDistinct).filter(([name]) => !HOP_BY_HOP.includes(name) && !named.includes(name)),
  ) as OutgoingHttpHeaders
}

/** Connects the egress proxy to a target whose addresses were checked: one HTTP request, or a tunnel for https and WebSockets. */
import { type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse, request as send } from 'node:http'
import { connect } from 'node:net'
import type { Duplex } from 'node:stream'
import { pinnedLookup } from '@sluice/kit'
import type { ResolvedAddress } from '@sluice/sdk'

const ANSWER_MS_MAX = 120_000
const CONNECT_MS_MAX = 20_000
/** A tunnel without any data for this long is closed. */
const TUNNEL_IDLE_MS_MAX = 300_000
/** Headers that concern a single connection, so the proxy does not pass them on. */
const HOP_BY_HOP = [
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization'],
  ...['te', 'trailer', 'transfer-encoding', 'upgrade'],
]
const INVALID_ANSWER = 'sent an answer that is not valid HTTP'

/** A URL and the addresses of its host that may be connected to. */
export interface Target {
  readonly url: URL
  readonly addresses: readonly ResolvedAddress[]
}

/** Returns the host of a URL in the form that sockets expect: an IPv6 address has no brackets. */
const connectHost = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '')

/** Forwards one plain HTTP request on a new connection. Calls `refuse` without an answer that can be passed on. */
export function forwardRequest(
  { url, addresses }: Target,
  request: IncomingMessage,
  response: ServerResponse,
  refuse: (status: number, text: string) => void,
): void {
  const outgoing = send({
    host: connectHost(url),
    port: url.port || 80,
    path: url.pathname + url.search,
    method: request.method,
    headers: { ...endToEndHeaders(request), host: url.host },
    lookup: pinnedLookup(addresses),
    agent: false,
    timeout: ANSWER_MS_MAX,
  })
  const fail = (text: string) => (response.headersSent ? void response.destroy() : refuse(502, `${url.host} ${text}`))
  outgoing.on('timeout', () => outgoing.destroy(new Error('The answer timed out')))
  outgoing.on('error', () => fail('did not answer'))
  // The browser did not ask for an upgrade, because its WebSockets use a tunnel.
  outgoing.on('upgrade', (_incoming, socket) => {
    socket.destroy()
    fail(INVALID_ANSWER)
  })
  outgoing.on('response', (incoming) => {
    incoming.on('error', () => response.destroy())
    const { statusCode = 0 } = incoming
    // A site must not ask for the proxy's credentials, and Node cannot write a status below 100.
    if (statusCode === 407 || statusCode < 100) {
      incoming.destroy()
      return fail(statusCode === 407 ? 'asked for proxy authentication' : INVALID_ANSWER)
    }
    response.writeHead(statusCode, endToEndHeaders(incoming))
    incoming.pipe(response)
  })
  response.on('close', () => outgoing.destroy())
  request.pipe(outgoing)
}

/** Returns the headers that are meant for the other end. Node adds the framing of a body itself. */
function endToEndHeaders({ headersDistinct, headers }: IncomingMessage): OutgoingHttpHeaders {
  const named = (headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase())
  return Object.fromEntries(
    Object.entries(headersDistinct).filter(([name]) => !HOP_BY_HOP.includes(name) && !named.includes(name)),
  ) as OutgoingHttpHeaders
}

/**
 * Connects the target, answers the `CONNECT` request on `socket` and passes bytes in both directions. `head` is what arrived
 * after the request. Resolves once the tunnel is open; rejects when the target cannot be reached.
 */
export function openTunnel({ url, addresses }: Target, socket: Duplex, head: Buffer): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const upstream = connect({ host: connectHost(url), port: Number(url.port || 80), lookup: pinnedLookup(addresses) })
  const end = () => {
    upstream.destroy()
    socket.destroy()
  }
  upstream.setTimeout(CONNECT_MS_MAX, () => upstream.destroy(new Error('The connection timed out')))
  upstream.once('error', reject)
  socket.once('close', () => upstream.destroy())
  upstream.once('connect', () => {
    upstream.off('error', reject)
    upstream.setTimeout(TUNNEL_IDLE_MS_MAX, end)
    upstream.on('error', end)
    upstream.on('close', end)
    socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
    upstream.write(head)
    socket.pipe(upstream)
    upstream.pipe(socket)
    resolve()
  })
  return promise
}

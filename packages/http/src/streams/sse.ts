/**
 * `GET /api/events`: events as server-sent events. They are written to Node's own response: a web stream for each subscriber
 * would cost more memory than the rest of the subscription.
 */
import type { ServerResponse } from 'node:http'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { every } from '@sluice/kit'
import type { EventBus } from '@sluice/runtime'
import { AppError, type Clock } from '@sluice/sdk'
import { countedClient } from '../auth/identity.ts'
import { authenticate } from '../middleware/authenticate.ts'
import { sameOrigin } from '../middleware/origin.ts'
import { type Endpoint, type EndpointDoc, headersOf, type Step } from '../request/context.ts'
import { SECURITY_HEADERS } from '../request/respond.ts'
import type { AppParts } from '../server/app-parts.ts'
import type { Connection, Connections } from './connections.ts'
import type { FanOut, Sink } from './fan-out.ts'
import { parseSubscription, type Subscription, subscriptionQuery } from './subscription.ts'

const KEEP_ALIVE = Buffer.from(':\n\n')
const KEEP_ALIVE_MS = 15_000
const RETRY_MS = 2000

const HEADERS = {
  ...SECURITY_HEADERS,
  'content-type': 'text/event-stream',
  'x-accel-buffering': 'no',
  connection: 'close',
} as const

const doc: EndpointDoc = {
  method: 'GET',
  path: '/api/events',
  summary: 'Follow events as server-sent events',
  auth: 'client',
  headers: { 'Last-Event-ID': 'The id of the last event seen; later events are sent first' },
  query: subscriptionQuery,
  mediaType: 'text/event-stream',
  answers: {
    200: {
      description:
        'Events as they happen, each a `#/components/schemas/Event` with `id` and `timestamp`. An event named `gap` has the number of missed events',
    },
  },
}

/** The events as server-sent events. */
export interface EventStreams {
  readonly bus: EventBus
  readonly connections: Connections
  readonly fanOut: FanOut
}

export const sseEndpoint = (streams: EventStreams, parts: AppParts): Endpoint => ({
  doc,
  steps: [sameOrigin(parts.snapshot.gateway), authenticate('client', parts, headersOf, true), openStream(streams, parts)],
})

const openStream =
  (streams: EventStreams, { runtime: { people } }: Pick<AppParts, 'runtime'>): Step =>
  async (c) => {
    const subscription = parseSubscription(c)
    const response = c.env?.outgoing
    if (!response) throw new AppError('unavailable', 'Events are sent over a connection, and there is none')
    if (c.req.method === 'HEAD') return new Response(null, { headers: HEADERS })
    if (response.destroyed) throw new AppError('aborted', 'The client disconnected before it was admitted')
    const { person, role, tokenHash } = c.get('caller')
    const client = countedClient(people, person, role)
    streams.connections.checkRoom(client)
    subscribe(streams, response, subscription, { tokenHash, client })
    return RESPONSE_ALREADY_SENT
  }

/** A function of its own, so that its closures do not keep the request for as long as the stream lasts. */
function subscribe(
  { bus, connections, fanOut }: EventStreams,
  response: ServerResponse,
  subscription: Subscription,
  { tokenHash, client }: Pick<Connection, 'tokenHash' | 'client'>,
): void {
  // The body ends with the connection and is not chunked: a frame is then one write of bytes that all subscribers share.
  response.removeHeader('transfer-encoding')
  response.writeHead(200, HEADERS)
  // The head leaves with the first bytes, but is flattened on its own: a response that joins both keeps 46 pieces of text, 1.5 KB.
  response.cork()
  response.flushHeaders()
  // A new subscriber learns where it starts, so that it can resume before its first event.
  const start = subscription.lastEventId === null ? `id: ${bus.run}-${bus.seq}\n` : ''
  response.write(`retry: ${RETRY_MS}\n${start}\n`)
  response.uncork()
  const member = fanOut.add(new ResponseSink(response), subscription)
  const connection: Connection = { kind: 'sse', tokenHash, client, end: () => void response.end() }
  connections.add(connection)
  const onClose = (): void => {
    fanOut.remove(member)
    connections.remove(connection)
  }
  response.on('close', onClose)
  setImmediate(forgetRequest, response, onClose)
}

/** Removes the listener of the adaptor, which would keep the request for as long as the stream lasts. It is there by the next tick. */
function forgetRequest(response: ServerResponse, onClose: () => void): void {
  for (const listener of response.listeners('close')) if (listener !== onClose) response.removeListener('close', listener as () => void)
}

/** Writes a comment to all streams every 15 seconds, so that proxies and clients see that a silent stream is alive. */
export const keepAlive = (fanOut: FanOut, clock: Clock, signal: AbortSignal): Promise<void> =>
  every(clock, KEEP_ALIVE_MS, signal, () => fanOut.writeAll(KEEP_ALIVE))

class ResponseSink implements Sink {
  readonly #response: ServerResponse

  constructor(response: ServerResponse) {
    this.#response = response
  }
  bufferedBytes(): number {
    return this.#response.writableLength
  }
  /** Writes to the socket: the response would add nothing to the bytes, but take as long again. */
  write(frame: Buffer): void {
    const { socket, writableEnded } = this.#response
    if (!writableEnded) (socket ?? this.#response).write(frame)
  }
  destroy(): void {
    this.#response.destroy()
  }
}

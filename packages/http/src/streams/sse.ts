/**
 * `GET /api/events`: events as server-sent events (§6). Written to node's own response: a web stream for each subscriber
 * would cost more memory than everything else about it.
 */
import type { ServerResponse } from 'node:http'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { every } from '@sluice/kit'
import type { EventBus } from '@sluice/runtime'
import { AppError, type Clock } from '@sluice/sdk'
import type { Endpoint, EndpointDoc } from '../endpoint.ts'
import type { Gate } from '../gate.ts'
import { SECURITY_HEADERS } from '../security-headers.ts'
import type { Connections } from './connections.ts'
import type { FanOut, Sink, Subscription } from './fan-out.ts'
import { parseSubscription, subscriptionQuery } from './subscription.ts'

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
  headers: { 'Last-Event-ID': 'The id of the last event seen; what came after it is sent first' },
  query: subscriptionQuery,
  mediaType: 'text/event-stream',
  answers: {
    200: {
      description:
        'Events as they happen, each a `#/components/schemas/Event` with `id` and `timestamp`; one named `gap` tells how many were missed',
    },
  },
}

export interface SseDeps {
  readonly bus: EventBus
  readonly connections: Connections
  readonly fanOut: FanOut
}

export function sseEndpoint({ bus, connections, fanOut }: SseDeps, gate: Gate): Endpoint {
  return {
    doc,
    async serve(c) {
      const caller = await gate.admit(c, doc.auth)
      const subscription = parseSubscription(c, caller)
      const response = c.env?.outgoing
      if (!response) throw new AppError('unavailable', 'Events are sent over a connection, and there is none')
      if (c.req.method === 'HEAD') return new Response(null, { headers: HEADERS })
      if (response.destroyed) throw new AppError('aborted', 'The client left before it was let in')
      connections.checkRoom()
      open(response, subscription, caller.tokenHash)
      return RESPONSE_ALREADY_SENT
    },
  }

  /** Apart from the request, so that nothing of it is kept for as long as the stream lasts. */
  function open(response: ServerResponse, subscription: Subscription, tokenHash: string | null): void {
    // The body ends with the connection and is not cut into chunks: a frame is then one write of bytes all subscribers share.
    response.removeHeader('transfer-encoding')
    response.writeHead(200, HEADERS)
    response.write(preamble(subscription.lastEventId))
    const leaveFanOut = fanOut.add(new ResponseSink(response), subscription)
    const leave = connections.add({ kind: 'sse', tokenHash, end: () => void response.end() })
    response.on('close', () => {
      leaveFanOut()
      leave()
    })
  }

  /** A new subscriber learns where it starts, so that it can resume before the first event. */
  function preamble(lastEventId: string | null): string {
    return lastEventId === null ? `retry: ${RETRY_MS}\nid: ${bus.run}-${bus.seq}\n\n` : `retry: ${RETRY_MS}\n\n`
  }
}

/** One timer for all: proxies and clients see that a silent stream is alive. */
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
  write(frame: Buffer): void {
    const { socket, writableEnded } = this.#response
    // Past the response, which adds nothing to the bytes and takes as long as the socket.
    if (!writableEnded) (socket ?? this.#response).write(frame)
  }
  destroy(): void {
    this.#response.destroy()
  }
}

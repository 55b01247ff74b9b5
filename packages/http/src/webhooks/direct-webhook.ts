/**
 * Serves the requests to a webhook from Node's own request and response, without the objects of the Fetch API and the chain of middleware,
 * which take a noticeable part of the processor time of a message.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Raw, Trace } from '@sluice/sdk'
import type { ConnectedPeers } from '../middleware/client-peer.ts'
import { type BodyRoom, readIncoming } from '../request/body.ts'
import { type DirectRoute, ParsedHeaders, traceIn } from '../request/context.ts'
import { problem } from '../request/problem.ts'
import { JSON_HEADERS, RECEIVED, withSecurityHeaders } from '../request/respond.ts'
import type { AppParts } from '../server/app-parts.ts'
import type { WebhookReceiver, WebhookRequest } from './webhook-receiver.ts'

/** A list of names and values, because Node copies an object once more. */
const RECEIVED_HEADERS = Object.entries({ ...JSON_HEADERS, 'content-length': String(Buffer.byteLength(RECEIVED)) }).flat()

export function directWebhook(receiver: WebhookReceiver, path: string, { runtime, snapshot, peers }: AppParts): DirectRoute {
  const { clock, log, hideSecrets } = runtime
  return async (incoming, outgoing) => {
    const request = new IncomingWebhook(incoming, peers)
    const [startMs, startedAtMs] = [clock.nowMs(), clock.monotonicMs()]
    try {
      const answer = await receiver.receive(request)
      if (answer) await write(outgoing, withSecurityHeaders(answer))
      else outgoing.writeHead(200, RECEIVED_HEADERS).end(RECEIVED, 'latin1')
    } catch (error) {
      await write(
        outgoing,
        problem(error, { log, hide: hideSecrets }, () => path),
      ).catch(() => outgoing.destroy())
    }
    if (snapshot.observers.length === 0) return
    const span = { trace: request.trace, startMs, tookMs: clock.monotonicMs() - startedAtMs }
    snapshot.observe({ kind: 'request', method: 'POST', route: path, status: outgoing.statusCode, span })
  }
}

class IncomingWebhook implements WebhookRequest {
  readonly #incoming: IncomingMessage
  readonly #peers: ConnectedPeers
  #trace: Trace | undefined

  constructor(incoming: IncomingMessage, peers: ConnectedPeers) {
    this.#incoming = incoming
    this.#peers = peers
  }

  /** Node joins a header that is sent twice with a comma, which no signature contains. */
  get headers(): Raw['headers'] {
    return this.#incoming.headers as Raw['headers']
  }

  get url(): string {
    const { headers, socket, url } = this.#incoming
    return `${'encrypted' in socket && socket.encrypted === true ? 'https' : 'http'}://${headers.host}${url}`
  }

  get address(): string {
    const { headers, socket } = this.#incoming
    return this.#peers.of(socket, socket.remoteAddress ?? '', new ParsedHeaders(headers)).address
  }

  get trace(): Trace {
    this.#trace ??= traceIn(new ParsedHeaders(this.#incoming.headers))
    return this.#trace
  }

  readBody(bytesMax: number, room: BodyRoom): Promise<Uint8Array> {
    return readIncoming(this.#incoming, bytesMax, room)
  }
}

/** Writes an answer that this process has made. */
async function write(outgoing: ServerResponse, answer: Response): Promise<void> {
  const body = Buffer.from(await answer.arrayBuffer())
  outgoing.writeHead(answer.status, { ...Object.fromEntries(answer.headers), 'content-length': body.length }).end(body)
}

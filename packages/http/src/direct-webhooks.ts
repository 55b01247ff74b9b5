/**
 * The webhooks of channels on Node's own request and answer. Providers post all day, and need nothing of what is made for
 * routes: this leaves out the router, the web objects and the turns of the event loop between them.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { newTrace } from '@sluice/agent'
import type { Live } from '@sluice/runtime'
import { createClientPeers } from '@sluice/runtime'
import { parseTraceparent } from '@sluice/sdk'
import type { AppOptions } from './app.ts'
import { createReceiver, RECEIVED, type Receiver } from './channel-webhook.ts'
import { createGather } from './gather.ts'
import { ParsedHeaders } from './headers-of.ts'
import { type Answer, answerTo } from './problem.ts'
import { readIncoming } from './raw-body.ts'
import { JSON_HEADERS } from './security-headers.ts'

type DirectOptions = Pick<AppOptions, 'runtime' | 'inlet' | 'budget' | 'forwarding'>

/** Takes a request that is for a channel; false for any other. */
export type Direct = (incoming: IncomingMessage, outgoing: ServerResponse) => boolean

const RECEIVED_ANSWER: Answer = { status: 200, headers: JSON_HEADERS, body: RECEIVED }

export function createDirect({ runtime, inlet, budget, forwarding }: DirectOptions): Direct {
  if (!inlet) return () => false
  const gather = createGather()
  let live: Live | undefined
  let receivers = new Map<string, Receiver>()
  let peers = createClientPeers(runtime.live().config, forwarding)
  /** Made anew with each generation. */
  const receiverOf = (path: string): Receiver | undefined => {
    const current = runtime.live()
    if (current !== live) {
      live = current
      peers = createClientPeers(current.config, forwarding)
      receivers = new Map(
        current.channels.flatMap((channel) =>
          channel.webhook
            ? [[channel.webhook.path, createReceiver(channel, channel.webhook, { runtime, live: current, budget, ...inlet })]]
            : [],
        ),
      )
    }
    return receivers.get(path)
  }

  return (incoming, outgoing) => {
    if (incoming.method !== 'POST') return false
    const { url = '', headers } = incoming
    const query = url.indexOf('?')
    const path = query < 0 ? url : url.slice(0, query)
    const receive = receiverOf(path)
    if (!receive) return false
    const watch = live && watchRequest(live, path, runtime.clock, incoming)
    const finish = (answer: Answer): void => {
      send(outgoing, answer)
      watch?.ended(answer.status)
    }
    receive({
      headers: headers as Record<string, string>,
      url,
      peer: peers.look(incoming.socket.remoteAddress ?? '', new ParsedHeaders(headers)).address,
      read: (bytesMax, room) => readIncoming(incoming, bytesMax, room),
      trace: watch?.trace,
    }).then(
      // Answers that waited for one commit leave together by themselves.
      (verdict) => (verdict === 'kept' ? finish(RECEIVED_ANSWER) : void gather(RECEIVED_ANSWER).then(finish)),
      (error: unknown) => void gather(answerTo(error, { log: runtime.log, hide: runtime.hideSecrets }, path)).then(finish),
    )
    return true
  }
}

function send(outgoing: ServerResponse, { status, headers, body }: Answer): void {
  outgoing.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) }).end(body)
}

/** Undefined where nobody observes. */
function watchRequest(live: Live, route: string, clock: DirectOptions['runtime']['clock'], { headers }: IncomingMessage) {
  if (live.observers.length === 0) return undefined
  const [startMs, startedAtMs] = [clock.nowMs(), clock.monotonicMs()]
  const trace = newTrace(parseTraceparent(String(headers.traceparent ?? ''), String(headers.tracestate ?? '')))
  return {
    trace,
    ended(status: number): void {
      live.observe({ kind: 'request', method: 'POST', route, status, span: { trace, startMs, tookMs: clock.monotonicMs() - startedAtMs } })
    },
  }
}

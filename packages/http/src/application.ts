/**
 * What answers requests: Hono on its adaptor for Node. A module of its own that is loaded once the port is bound, because the
 * adaptor makes Node load its second HTTP stack, which takes as long as everything else before the first answer.
 */
import type { createServer, RequestListener, Server } from 'node:http'
import { createAdaptorServer, getRequestListener, type HttpBindings, RequestError } from '@hono/node-server'
import { createForwardingWatch } from '@sluice/runtime'
import { AppError } from '@sluice/sdk'
import { createDirect } from './direct-webhooks.ts'
import { createGather } from './gather.ts'
import { createHandler, type HandlerOptions } from './handler.ts'
import { createIngressBudget } from './ingress-budget.ts'
import { problem } from './problem.ts'
import type { SubscriberCounts } from './streams/connections.ts'
import { createSocketServer } from './streams/socket-server.ts'
import { createStreams } from './streams/streams.ts'

export interface ApplicationOptions extends Omit<HandlerOptions, 'streams' | 'budget' | 'forwarding'> {
  /** Resolves when requests may be served; until then they wait. */
  readonly ready?: Promise<unknown>
  /** Kept up to date; without it, nothing is streamed. */
  readonly subscribers?: SubscriberCounts
}

export interface Application {
  /** What takes over the server's requests. */
  readonly listener: RequestListener
  /** Ends every stream in good order, and admits no more. */
  endStreams(reason: string): void
}

/** A peer whose upgrade was refused and that does not hang up is hung up on. */
const REFUSED_UPGRADE_MS = 10_000

/** Takes over the server's upgrades. */
export function attachApplication(server: Server, { subscribers, ...options }: ApplicationOptions): Application {
  const { runtime, auth } = options
  const streams = subscribers && createStreams({ runtime, onRevoked: auth.onRevoked, counts: subscribers })
  const budget = createIngressBudget()
  const forwarding = createForwardingWatch(runtime.log, runtime.health.ignoredForwarding)
  const fetch = createHandler({ ...options, budget, forwarding, ...(streams ? { streams: streams.endpoints } : {}) })
  const gather = createGather()
  const handle = (request: Request, env: unknown): Response | Promise<Response> => {
    const bindings = env as Partial<HttpBindings>
    if (!bindings.outgoing) limitUpgrade(bindings)
    const response = fetch(request, bindings)
    return response instanceof Promise ? response.then(gather) : response
  }
  /** Of its own, the adaptor answers what it cannot make a request of with an empty body. */
  const errorHandler = (error: unknown): Response =>
    problem(
      error instanceof RequestError ? new AppError('invalid_request', 'The request target or the Host header is not valid') : error,
      { log: runtime.log, hide: runtime.hideSecrets },
      'unmatched',
    )
  createAdaptorServer({
    fetch: handle,
    createServer: (() => server) as unknown as typeof createServer,
    ...(streams ? { websocket: { server: createSocketServer() } } : {}),
  })
  const serve = getRequestListener(handle, { errorHandler }) as RequestListener
  const direct = createDirect({ ...options, budget, forwarding })
  return {
    listener(incoming, outgoing) {
      if (!direct(incoming, outgoing)) serve(incoming, outgoing)
    },
    endStreams: (reason) => streams?.closeAll(reason),
  }
}

/** An upgrade that succeeds lifts the limit itself. */
function limitUpgrade({ incoming }: Partial<HttpBindings>): void {
  const socket = incoming?.socket
  socket?.setTimeout(REFUSED_UPGRADE_MS, () => socket.destroy())
}

/** The types of the HTTP side: the variables that one request carries from middleware to middleware, and the shape of a route. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { HttpBindings } from '@hono/node-server'
import { newTrace } from '@sluice/agent'
import {
  type ClientId,
  type IdempotencyKey,
  parseTraceparent,
  type ReceivedFile,
  type Role,
  type Route,
  type Trace,
  type TriggerWebhook,
  type WebhookAuth,
} from '@sluice/sdk'
import type { Context, MiddlewareHandler } from 'hono'
import type { HeaderReader, RequestHeaders } from '../middleware/client-address.ts'

/** The connection that a request came over. */
export interface Connection extends Partial<HttpBindings> {
  /** The operator at the other end of the control socket, as `cli:<user>`; absent on every other connection. */
  readonly operator?: string
  /** The path that a program mounted the API under, such as `/sluice`; empty or absent without one. */
  readonly basePath?: string
}

/** The other end of a connection, before its credential is checked. */
export interface Peer {
  /** The key that limiters count by; see `clientAddress`. */
  readonly address: string
  /** True: limiters do not count its failures; see `isSpared`. */
  readonly spared: boolean
  /** True if the browser reached the daemon over TLS, as far as the daemon can know: by its own socket, or by a trusted proxy. */
  readonly isSecure: boolean
  /** An object that lives as long as the connection, or as the request if no other one can follow on its connection. */
  readonly connection: object
  /** See `Connection.operator`. Limiters and lockouts do not apply to an operator. */
  readonly operator?: string
}

/** The caller that `authenticate` admitted. */
export interface Caller {
  readonly client: ClientId
  /** The paired device; null if no token was required. */
  readonly device: string | null
  /** As in `ToolContext.caller`: `device:<id>`, `cli` on the control socket, otherwise `local`. */
  readonly person: string
  /** The name under which records keep what the caller does: `device:<id>`, `cli:<user>` or `local`. */
  readonly by: string
  /** The SHA-256 of the caller's token; `CONTROL_SOCKET` for an operator on the control socket; null if no token was required. */
  readonly tokenHash: string | null
  /** Null on routes that ask for no token. */
  readonly role: Role | null
}

/** The variables of a request. The middleware that sets a variable says so; only later steps may read it. */
export type HttpEnv = {
  /** Empty without a socket, as in `app.request()`. */
  Bindings: Connection
  Variables: {
    /** The name of the route for logs and observers, where it differs from the path that matched. */
    routeName?: string
    /** Made on first use; read it with `traceOf`. */
    trace?: Trace
    peer: Peer
    caller: Caller
    /** `Set-Cookie` headers of the refusal that follows; `authenticate` sets them. */
    deletedCookies?: readonly string[]
    query: unknown
    /** The bytes of the body. */
    rawBody: Uint8Array
    /** The file of the body; see `receiveFile`. */
    file?: ReceivedFile
    /** The triggers on the path of the request, and the payload of its event. */
    trigger: TriggerRequest
    /** The verified sender of a request to a trigger with its own authentication; undefined for other triggers. */
    sender?: Sender
    /** The payload of the event of a trigger. */
    payload: string | null
    /** The message of `POST /webhook`, its agent, and the name of its session. */
    message: { readonly text: string; readonly agent: string; readonly session: string | null }
    /** The key of a request that was claimed; undefined if the request has none. */
    idempotency?: IdempotencyKey | undefined
  }
}

/** A request to a path that triggers name. */
export interface TriggerRequest {
  /** The ways in which triggers take the request: with the credentials of `POST /webhook`, or with their own. */
  readonly webhooks: readonly TriggerWebhook[]
  /** True: the request is verified by the authentication of its triggers, and has no caller. */
  readonly isSigned: boolean
}

/** The sender that `verifySender` admitted. */
export interface Sender {
  /** Each authentication of the triggers on the path that the request satisfies. */
  readonly verified: readonly WebhookAuth[]
  /** As in `SopEvent.by`: `webhook:<auth>`. */
  readonly by: string
  /** As in `SopEvent.key`; absent if the sender does not name its deliveries. */
  readonly key?: string
}

export type HttpContext = Context<HttpEnv>

/** A middleware or a handler. It throws `AppError` to refuse the request. */
export type Step = MiddlewareHandler<HttpEnv>

/** A route as the OpenAPI document describes it. */
export interface EndpointDoc extends Omit<Route, 'handle'> {
  /** The request headers that the route reads, each with its meaning. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Serves a request from Node's own objects, in place of the steps of its route. Never rejects. */
export type DirectRoute = (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<void>

/** One route: its description, and the steps that serve it in the order in which they run. */
export interface Endpoint {
  readonly doc: EndpointDoc
  readonly steps: readonly Step[]
  /** Answers as the steps do. */
  readonly direct?: DirectRoute
}

/** The headers as Node parsed them; without a socket, the `Headers` of the request. */
export function headersOf(c: HttpContext): RequestHeaders {
  const incoming = c.env?.incoming
  return incoming ? new ParsedHeaders(incoming.headers) : c.req.raw.headers
}

/** Reads headers as Node parsed them. */
export class ParsedHeaders implements RequestHeaders {
  readonly #headers: IncomingHttpHeaders

  constructor(headers: IncomingHttpHeaders) {
    this.#headers = headers
  }

  get(name: string): string | null {
    const value = this.#headers[name]
    return typeof value === 'string' ? value : null
  }

  keys(): readonly string[] {
    return Object.keys(this.#headers)
  }
}

/** The address of the socket, whatever the headers claim; empty without a socket. */
export const socketAddress = (c: HttpContext): string => c.env?.incoming?.socket.remoteAddress ?? ''

/** The path that a program mounted the API under; empty without one. Express keeps it in `baseUrl` and takes it away from `url`. */
export function basePathOf({ env }: HttpContext): string {
  const { baseUrl } = (env?.incoming ?? {}) as { readonly baseUrl?: unknown }
  return env?.basePath ?? (typeof baseUrl === 'string' ? baseUrl : '')
}

/** The span of this request, in the trace that its `traceparent` header names. */
export function traceOf(c: HttpContext): Trace {
  const known = c.get('trace')
  if (known) return known
  const trace = traceIn(headersOf(c))
  c.set('trace', trace)
  return trace
}

/** A new span, in the trace that the `traceparent` header names. */
export const traceIn = (headers: HeaderReader): Trace =>
  newTrace(parseTraceparent(headers.get('traceparent') ?? '', headers.get('tracestate')))

/** The port of HTTP routes, which the HTTP side mounts, guards, documents and tests from one table. */
import * as v from 'valibot'
import type { ClientId } from './client-id.ts'
import type { Trace } from './trace.ts'

/**
 * The role of a credential. An `operator` may do everything; a `client` sees and changes only its own sessions, turns,
 * approvals and memories.
 */
export const ROLES = ['operator', 'client'] as const
export type Role = (typeof ROLES)[number]

/**
 * The caller that a route accepts: the least role of a paired device (checked only while pairing is required), `local` for a
 * process on this machine without a proxy, or `open` for every caller. A `client` route shows a client only its own data.
 */
export type RouteAuth = Role | 'local' | 'open'

/**
 * The session of the browser that sent a request: a cookie in the place of a bearer token, bound to a device of its own, so that
 * revoking the device ends the session. Every method throws `forbidden` unless a page of this daemon sent the request.
 */
export interface BrowserSession {
  /** Throws `forbidden` unless a page of this daemon sent the request. Call it before a code for a session is used up. */
  check(): void
  /** Begins a session. A browser that has one with the same role and issuer keeps its device; any other session of it ends. */
  begin(session: NewBrowserSession): Promise<{ readonly device: string; readonly expiresAtMs: number; readonly setCookie: string }>
  /** Lets the session last longer. Undefined when it was renewed a short time ago, or when the request has no session. */
  renew(): Promise<{ readonly expiresAtMs: number; readonly setCookie: string } | undefined>
  /** Ends the session, if there is one, and its open streams. Returns the header that deletes the cookie. */
  end(): Promise<{ readonly setCookie: string }>
}

export interface NewBrowserSession {
  /** The name of the device. */
  readonly name: string
  readonly role: Role
  /** As in `DeviceRow`. */
  readonly issuedBy: string | null
}

export interface RouteRequest<Body = unknown, Query = unknown> {
  readonly client: ClientId
  /** The device of the caller; `null` when no bearer token was required. */
  readonly device: string | null
  /** The name under which records keep what the caller does: `device:<id>`, `cli:<user>` on the control socket, otherwise `local`. */
  readonly by: string
  /** True: the caller is an operator on the control socket, who could read and change the files of the daemon directly. */
  readonly onControlSocket: boolean
  /** The role of the caller: `operator` while pairing is not required, `null` when no bearer token was required. */
  readonly role: Role | null
  readonly headers: Headers
  readonly params: Readonly<Record<string, string>>
  readonly url: URL
  readonly query: Query
  readonly body: Body
  /** The bytes that `body` was parsed from. */
  readonly raw: Uint8Array
  readonly signal: AbortSignal
  readonly trace: Trace
  readonly browserSession: BrowserSession
  /** Calls `listener` when the credential of the caller is revoked, for answers that stay open. Returns an unsubscribe function. */
  onRevoked(listener: () => void): () => void
  /**
   * Calls a route of the API of the daemon as the same caller. Resolves to the JSON value of the answer, or to a `Response` of a
   * route that streams; rejects with the error of the route. Routes of features are not among them.
   */
  api(call: ApiCall): Promise<unknown>
}

export interface ApiCall {
  readonly method: string
  /** The path with its query. */
  readonly path: string
  /** Any JSON value; members that are undefined are left out. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly signal?: AbortSignal | undefined
}

export interface Route<Body extends v.GenericSchema = v.GenericSchema, Query extends v.GenericSchema = v.GenericSchema> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** The path, with `:name` for one segment. */
  readonly path: `/${string}`
  readonly summary: string
  readonly auth: RouteAuth
  /**
   * The limit of one paired device, of one person whose accounts are linked where the devices are only clients, or of one address where `auth` is
   * `open` or no device is known; beyond it the answer is `rate_limited`. Unless given, a client calls all such routes together at most 1,200
   * times, and an operator has no limit.
   */
  readonly callsPerMinute?: number
  /** The largest accepted body in bytes; 65,536 unless given. */
  readonly bodyBytesMax?: number
  /** The schema of a required JSON body. Without a schema the body is not read. */
  readonly body?: Body
  /** The schema of the query. Every value is a text, and unknown names are ignored. */
  readonly query?: Query
  /** The answers by status, for the OpenAPI document, which adds the errors that every route can give. */
  readonly answers: Readonly<Record<number, { readonly description: string; readonly schema?: v.GenericSchema }>>
  /** The media type of a success that is not JSON. */
  readonly mediaType?: string
  /** Returns data for a JSON answer with status 200, or a `Response`. Throws an `AppError` to refuse. */
  handle(request: RouteRequest<v.InferOutput<Body>, v.InferOutput<Query>>): unknown
}

/**
 * The schema of an answer that contains the whole answer of a `GET` route of the daemon's own API, which features cannot import. The
 * OpenAPI document has the schema of that route in its place.
 */
export const answerOf = (path: `/${string}`) => v.pipe(v.looseObject({}), v.metadata({ answerOf: path }))

/** Returns its argument; types `body` and `query` in `handle` from their schemas. */
export const defineRoute = <const Body extends v.GenericSchema, const Query extends v.GenericSchema>(route: Route<Body, Query>): Route =>
  route as unknown as Route

/** The port of HTTP routes: a table the gateway mounts, guards, documents and tests. */
import type * as v from 'valibot'
import type { ClientId } from './client-id.ts'
import type { Trace } from './trace.ts'

/**
 * What a credential may do: an `operator` everything; a `client` only what concerns its own sessions, turns, approvals and
 * memories.
 */
export const ROLES = ['operator', 'client'] as const
export type Role = (typeof ROLES)[number]

/**
 * Who may call: the least role a paired device needs (asked for only while pairing is required), `local` a process on this
 * machine that came through no proxy, `open` anybody. A `client` route shows a client nothing but its own.
 */
export type RouteAuth = Role | 'local' | 'open'

export interface RouteRequest<Body = unknown, Query = unknown> {
  readonly client: ClientId
  /** The device that called; `null` where no bearer was asked for. */
  readonly device: string | null
  /** The role of the caller: `operator` while no pairing is required, `null` where no bearer was asked for. */
  readonly role: Role | null
  readonly headers: Headers
  readonly params: Readonly<Record<string, string>>
  readonly url: URL
  readonly query: Query
  readonly body: Body
  /** The bytes `body` was read from. */
  readonly raw: Uint8Array
  readonly signal: AbortSignal
  readonly trace: Trace
}

export interface Route<Body extends v.GenericSchema = v.GenericSchema, Query extends v.GenericSchema = v.GenericSchema> {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With `:name` for one segment. */
  readonly path: `/${string}`
  readonly summary: string
  readonly auth: RouteAuth
  /** From one address, before any credential is looked at; over it, `rate_limited`. Default: no limit. */
  readonly callsPerMinute?: number
  /** Default 65,536. */
  readonly bodyBytesMax?: number
  /** A JSON body is demanded and validated where there is a schema; otherwise the body is not read. */
  readonly body?: Body
  /** Every query value is a text; unknown ones are ignored. */
  readonly query?: Query
  /** What it answers, for the OpenAPI document; errors every route can give are added. */
  readonly answers: Readonly<Record<number, { readonly description: string; readonly schema?: v.GenericSchema }>>
  /** What a success is made of, where it is not JSON. */
  readonly mediaType?: string
  /** Returns JSON-able data for 200, or a `Response`. Throws `AppError` to refuse. */
  handle(request: RouteRequest<v.InferOutput<Body>, v.InferOutput<Query>>): unknown
}

/** Identity at run time; at compile time it types `body` and `query` in `handle` from their schemas. */
export const defineRoute = <const Body extends v.GenericSchema, const Query extends v.GenericSchema>(route: Route<Body, Query>): Route =>
  route as unknown as Route

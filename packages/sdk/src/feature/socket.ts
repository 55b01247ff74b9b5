/** The port of WebSockets that features serve, such as the media stream of a telephone call. */
import type { RouteAuth } from '../values/route.ts'

/** The request that asks for a WebSocket. */
export interface SocketRequest {
  readonly headers: Headers
  readonly params: Readonly<Record<string, string>>
  readonly url: URL
}

/** An open WebSocket. */
export interface FeatureSocket {
  /** Sends one message: a string as text, bytes as binary. Does nothing after the end. */
  send(data: string | Uint8Array): void
  /** The number of bytes that were sent and that the peer has not taken yet. */
  readonly bufferedBytes: number
  /** Closes the connection with a code of RFC 6455; 1000 unless given. */
  close(code?: number, reason?: string): void
}

/** Receives what happens on one WebSocket. */
export interface SocketListener {
  /** One message of at most 256 KiB: a string for text, bytes for binary. Must not throw. */
  message(data: string | Uint8Array): void
  /** The connection has ended, for any reason. Called once; no message follows. Must not throw. */
  closed(): void
}

export interface SocketRoute {
  /** The path, with `:name` for one segment. */
  readonly path: `/ws/${string}`
  readonly summary: string
  /** `open` leaves it to `open` to check who connects. The daemon ends the sockets of other callers when their token is revoked. */
  readonly auth: Exclude<RouteAuth, 'local'>
  /** Decides about a connection before it is accepted. Throws an `AppError` to refuse it; the returned function takes it over. */
  open(request: SocketRequest): (socket: FeatureSocket) => SocketListener
}

/** All open streams and sockets: their number, their tokens, and how they all end. */
import { AppError } from '@sluice/sdk'
import type { EndOfTrust, RevocationListener } from '../revocations.ts'

export type ConnectionKind = 'sse' | 'ws'

/** Why the daemon ends a connection, as the code of a WebSocket's close frame: it stops or cannot check the token, or the token was revoked. */
export type EndCode = 1001 | 4401

export interface Connection {
  readonly kind: ConnectionKind
  /** The hash of the token that opened it; null if none was required. */
  readonly tokenHash: string | null
  /** Closes the connection with its reason. May be called after it has ended. */
  end(code: EndCode, reason: string): void
}

/** The number of subscribers of each kind, and of events that slow subscribers missed. Read for the vitals. */
export interface SubscriberCounts {
  sse: number
  ws: number
  dropped: number
}

export interface Connections {
  /** Throws `unavailable` if the maximum is reached, or if all connections are being ended. */
  checkRoom(): void
  /** Call `remove` when the connection has ended. */
  add(connection: Connection): void
  /** May be called twice. */
  remove(connection: Connection): void
  /** Ends the connections that were opened without a token, while no pairing was required. */
  endUnpaired(): void
  /** Ends all connections and admits no more. */
  endAll(reason: string): void
}

const RETRY_AFTER_SECS = 5

/**
 * `max` reads `[gateway] max_subscribers` as it is now. `onRevoked` is `Auth.onRevoked`; it has a listener only while there are
 * connections.
 */
export function createConnections(
  max: () => number,
  counts: SubscriberCounts,
  onRevoked: (listener: RevocationListener) => () => void,
): Connections {
  const open = new Set<Connection>()
  let isClosed = false
  let stopListening: (() => void) | undefined

  const endAllOf = (tokenHash: string | null, code: EndCode, reason: string): void => {
    for (const connection of open) if (connection.tokenHash === tokenHash) connection.end(code, reason)
  }
  const endUntrusted = (tokenHash: string, why: EndOfTrust): void => {
    if (why === 'revoked') endAllOf(tokenHash, 4401, 'the device was revoked')
    else endAllOf(tokenHash, 1001, 'the token cannot be checked now')
  }

  return {
    checkRoom() {
      if (isClosed) throw new AppError('unavailable', 'The daemon is stopping', { retryAfterSecs: RETRY_AFTER_SECS })
      if (open.size < max()) return
      const detail = `There are already ${max()} subscribers ([gateway] max_subscribers)`
      throw new AppError('unavailable', detail, { retryAfterSecs: RETRY_AFTER_SECS })
    },
    add(connection) {
      open.add(connection)
      counts[connection.kind] += 1
      stopListening ??= onRevoked(endUntrusted)
    },
    remove(connection) {
      if (!open.delete(connection)) return
      counts[connection.kind] -= 1
      if (open.size > 0) return
      stopListening?.()
      stopListening = undefined
    },
    endUnpaired: () => endAllOf(null, 4401, 'pairing is required now'),
    endAll(reason) {
      isClosed = true
      for (const connection of open) connection.end(1001, reason)
    },
  }
}

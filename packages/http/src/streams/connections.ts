/** All open streams and sockets: their number, whose they are, and how they all end. */
import type { LimitedClient, Shares } from '@sluice/agent'
import { AppError } from '@sluice/sdk'
import type { EndOfTrust, RevocationListener } from '../auth/revocations.ts'

export type ConnectionKind = 'sse' | 'ws'

/** Why the daemon ends a connection, as the code of a WebSocket's close frame: it stops or cannot check the token, or the token was revoked. */
export type EndCode = 1001 | 4401

export interface Connection {
  readonly kind: ConnectionKind
  /** The hash of the token that opened it; null if none was required. */
  readonly tokenHash: string | null
  /** The client whose share it counts for; undefined for a caller whom a feature checked. */
  readonly client: LimitedClient | undefined
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
  /**
   * Throws `share_used` if the client has as many connections as its share, and `unavailable` if the maximum is reached or all connections
   * are being ended. For an operator the maximum counts the connections of operators only, so that no other client can shut them out.
   */
  checkRoom(client: LimitedClient | undefined): void
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

export interface ConnectionsOptions {
  /** Reads `[gateway] max_subscribers` as it is now. */
  max(): number
  readonly counts: SubscriberCounts
  readonly shares: Shares
  /** `Auth.onRevoked`. It has a listener only while there are connections. */
  onRevoked(listener: RevocationListener): () => void
}

export function createConnections({ max, counts, shares, onRevoked }: ConnectionsOptions): Connections {
  const open = new Set<Connection>()
  let operators = 0
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
    checkRoom(client) {
      if (isClosed) throw new AppError('unavailable', 'The daemon is stopping', { retryAfterSecs: RETRY_AFTER_SECS })
      if (client) shares.check(client, 'streams', shares.heldBy(client, 'streams') + 1)
      if ((isOperator(client) ? operators : open.size) < max()) return
      const detail = `There are already ${max()} subscribers ([gateway] max_subscribers)`
      throw new AppError('unavailable', detail, { retryAfterSecs: RETRY_AFTER_SECS })
    },
    add(connection) {
      const { kind, client } = connection
      open.add(connection)
      counts[kind] += 1
      if (isOperator(client)) operators++
      if (client) shares.add(client, 'streams', 1)
      stopListening ??= onRevoked(endUntrusted)
    },
    remove(connection) {
      if (!open.delete(connection)) return
      const { kind, client } = connection
      counts[kind] -= 1
      if (isOperator(client)) operators--
      if (client) shares.add(client, 'streams', -1)
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

const isOperator = (client: LimitedClient | undefined): boolean => client?.standing === 'operator'

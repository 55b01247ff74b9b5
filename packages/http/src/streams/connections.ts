/** Every open stream and socket: how many there may be, whose they are, and how they all end. */
import { AppError } from '@sluice/sdk'

export type ConnectionKind = 'sse' | 'ws'

/** Why the daemon ends a connection; the codes of a WebSocket's close frame. */
export type EndCode = 1001 | 4401

export interface Connection {
  readonly kind: ConnectionKind
  /** The hash of the token that opened it; null: none did. */
  readonly tokenHash: string | null
  /** Ends it in good order. May be called after it has ended. */
  end(code: EndCode, reason: string): void
}

/** How many subscribers there are, and how many events those who lagged were not given; read for the vitals. */
export interface SubscriberCounts {
  sse: number
  ws: number
  dropped: number
}

export interface Connections {
  /** Throws `unavailable` when there is no room for another one, or when all are being ended. */
  checkRoom(): void
  /** Returns the way out, to be called once, when the connection has ended. */
  add(connection: Connection): () => void
  /** Ends those of nobody in particular, who came in while no pairing was required. */
  endUnpaired(): void
  /** Ends all there are and admits no more. */
  endAll(reason: string): void
}

export interface ConnectionsOptions {
  /** `[gateway] max_subscribers` of the moment. */
  readonly max: () => number
  readonly counts: SubscriberCounts
  /** See `Auth.onRevoked`; listened to while there are connections. */
  readonly onRevoked: (listener: (tokenHash: string) => void) => () => void
}

const RETRY_AFTER_SECS = 5

export function createConnections({ max, counts, onRevoked }: ConnectionsOptions): Connections {
  const open = new Set<Connection>()
  let isClosed = false
  let stopListening: (() => void) | undefined

  const endThoseOf = (tokenHash: string | null, reason: string) => {
    for (const connection of open) if (connection.tokenHash === tokenHash) connection.end(4401, reason)
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
      stopListening ??= onRevoked((tokenHash) => endThoseOf(tokenHash, 'the device was revoked'))
      return () => {
        open.delete(connection)
        counts[connection.kind] -= 1
        if (open.size > 0) return
        stopListening?.()
        stopListening = undefined
      }
    },
    endUnpaired: () => endThoseOf(null, 'pairing is required now'),
    endAll(reason) {
      isClosed = true
      for (const connection of open) connection.end(1001, reason)
    },
  }
}

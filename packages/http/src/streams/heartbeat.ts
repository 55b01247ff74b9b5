/** Pings every WebSocket at the same pace and cuts those that no longer answer; one timer for all. */

import { every } from '@sluice/kit'
import type { Clock } from '@sluice/sdk'
import type { WebSocket } from 'ws'

export const PING_MS = 25_000
/** A socket that was not heard of for this long is cut at the next ping. */
export const SILENCE_MS_MAX = 60_000

export interface Heartbeat {
  /** Until the returned function is called. */
  watch(socket: WebSocket): () => void
}

export function createHeartbeat(clock: Clock, signal: AbortSignal): Heartbeat {
  const heardAtMs = new Map<WebSocket, number>()

  // one function for all sockets, each of which is its `this`
  function onPong(this: WebSocket): void {
    if (heardAtMs.has(this)) heardAtMs.set(this, clock.monotonicMs())
  }

  void every(clock, PING_MS, signal, () => {
    for (const [socket, atMs] of heardAtMs) {
      if (clock.monotonicMs() - atMs >= SILENCE_MS_MAX) socket.terminate()
      else socket.ping()
    }
  })

  return {
    watch(socket) {
      heardAtMs.set(socket, clock.monotonicMs())
      socket.on('pong', onPong)
      return () => void heardAtMs.delete(socket)
    },
  }
}

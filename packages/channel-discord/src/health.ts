/** What is known of the connection, without asking. */
import type { ChannelHealth, Clock } from '@sluice/sdk'

export interface Health {
  now(): ChannelHealth
  connected(): void
  /** The connection is gone and is being made anew. */
  lost(): void
  down(detail: string): void
  received(): void
  sent(): void
}

export function createHealth(clock: Pick<Clock, 'nowMs'>): Health {
  let known: ChannelHealth = { state: 'connecting' }
  const become = (state: ChannelHealth['state'], detail?: string): void => {
    const { detail: _, ...kept } = known
    known = { ...kept, state, ...(detail !== undefined && { detail }) }
  }
  return {
    now: () => known,
    connected: () => become('ok'),
    // Down stays down until it is really back, or it would flap with every attempt.
    lost: () => known.state === 'ok' && become('connecting'),
    down: (detail) => become('down', detail),
    received() {
      known = { ...known, lastEventAtMs: clock.nowMs() }
    },
    sent() {
      known = { ...known, lastSentAtMs: clock.nowMs() }
    },
  }
}

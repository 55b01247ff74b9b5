/** Shows the sender that the turn of a message begins. */
import { signalScope } from '@sluice/kit'
import type { Channel, Lease, Logger, StartedMessage } from '@sluice/sdk'

export interface AcknowledgeOptions {
  readonly owned: { readonly lease: Pick<Lease, 'mayAct'> }
  readonly channel: Channel
  readonly started: StartedMessage
  /** The id that the turn gets if this is its first attempt. */
  readonly turnId: string
  readonly log: Logger
  /** Aborts when the daemon stops. */
  readonly signal: AbortSignal
}

const CALL_MS_MAX = 10_000

/**
 * Acknowledges a message when its turn begins for the first time: neither a later attempt nor a replay is acknowledged. Never rejects.
 * The channel's signal aborts after ten seconds.
 */
export async function acknowledge({ owned, channel, started, turnId, log, signal }: AcknowledgeOptions): Promise<void> {
  // The store keeps the turn id of the first attempt for all later ones.
  const isFirst = started.turnId === turnId && started.sinceMs === started.receivedAtMs
  if (!channel.acknowledge || !isFirst || !owned.lease.mayAct()) return
  try {
    using limit = signalScope([signal], CALL_MS_MAX)
    await channel.acknowledge(started.message, limit.signal)
  } catch (error) {
    log.debug('message not acknowledged', { channel: channel.name, inbox: started.number, error })
  }
}

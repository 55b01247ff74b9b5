/**
 * Reads from the store how many of the last replies of a channel were ambiguous: when a channel begins, so that neither a restart nor a reload
 * hides that it is degraded, and again while it is, because an operator may discard them and other nodes may send.
 */
import { type Channel, type Clock, INTERRUPTED_SEND, type Logger, type OutboxStore } from '@sluice/sdk'
import { ambiguousOf, DEGRADED_AFTER, recallAmbiguous } from './channel-health.ts'

const EVERY_MS = 60_000
/** The newest replies of each state that are read. */
const ROWS_MAX = 100

export interface RecallOptions {
  readonly store: { readonly outbox: Pick<OutboxStore, 'list'> }
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly log: Logger
}

export class RecallHealth {
  readonly #options: RecallOptions
  /** When each channel was read last, by the monotonic clock. */
  readonly #readMs = new WeakMap<Channel, number>()

  constructor(options: RecallOptions) {
    this.#options = options
  }

  /** Reads each channel once, and a degraded channel again each minute. Call it regularly. */
  look(channels: readonly Channel[]): void {
    const nowMs = this.#options.clock.monotonicMs()
    for (const channel of channels) {
      const readMs = this.#readMs.get(channel)
      const isDue = readMs === undefined || (ambiguousOf(channel) >= DEGRADED_AFTER && nowMs - readMs >= EVERY_MS)
      if (!isDue) continue
      this.#readMs.set(channel, nowMs)
      void this.#recall(channel)
    }
  }

  async #recall(channel: Channel): Promise<void> {
    const { store, log } = this.#options
    const known = ambiguousOf(channel)
    try {
      const inRow = await ambiguousInRow(store.outbox, channel.name)
      // A reply that ended meanwhile is counted already.
      if (ambiguousOf(channel) === known) recallAmbiguous(channel, inRow)
    } catch (error) {
      this.#readMs.delete(channel)
      log.warn('the last replies of a channel cannot be read', { channel: channel.name, error })
    }
  }
}

/** Resolves to the ambiguous replies since the last one that was sent, without replies that a stop of the daemon interrupted. */
async function ambiguousInRow(outbox: Pick<OutboxStore, 'list'>, channel: string): Promise<number> {
  const listed = await outbox.list({ channel, state: 'ambiguous', limit: ROWS_MAX })
  const ambiguous = listed.filter(({ error }) => error !== INTERRUPTED_SEND)
  // Most channels have none, and many replies that were sent.
  if (ambiguous.length === 0) return 0
  const sent = await outbox.list({ channel, state: 'sent', limit: ROWS_MAX })
  const lastSentMs = Math.max(0, ...sent.map(({ endedAtMs }) => endedAtMs ?? 0))
  return ambiguous.filter(({ endedAtMs }) => (endedAtMs ?? 0) > lastSentMs).length
}

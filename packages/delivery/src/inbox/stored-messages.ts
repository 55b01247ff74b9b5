/** The messages of queued rows that are not in memory: their channel reads them from the store again. */
import { ageMs, type JobOutcome } from '@sluice/kit'
import type { Channel, Inbound, Webhook } from '@sluice/sdk'
import type { OwnedRow } from '../delivery-queue.ts'
import type { ArrivedMessages } from './arrived-messages.ts'
import { ABSENT_DELAY_MS, type Attempts } from './attempts.ts'
import { HOUR_MS } from './notice.ts'
import { noSuchMessage, readMessage } from './read-message.ts'
import type { InboxWorkerOptions } from './worker-options.ts'

/** A message that its channel did not find in its request. The reason is null if it has been reported. */
export interface Unreadable {
  readonly unreadable: string | null
  readonly receivedAtMs: number
}

export class StoredMessages {
  readonly #options: Pick<InboxWorkerOptions, 'clock' | 'features' | 'log'>
  readonly #arrived: ArrivedMessages
  readonly #attempts: Pick<Attempts, 'giveUp'>
  /** The webhook that found no message in the request of a row. Another one, such as after a reload, is tried again. */
  readonly #unreadable = new WeakMap<OwnedRow, { readonly webhook: Webhook | undefined; readonly receivedAtMs: number }>()

  constructor(
    options: Pick<InboxWorkerOptions, 'clock' | 'features' | 'log'>,
    arrived: ArrivedMessages,
    attempts: Pick<Attempts, 'giveUp'>,
  ) {
    this.#options = options
    this.#arrived = arrived
    this.#attempts = attempts
  }

  /** Reads the message of a row. Resolves to undefined if it has ended. */
  async read(row: OwnedRow, channel: Channel | undefined): Promise<Inbound | Unreadable | undefined> {
    const known = this.#unreadable.get(row)
    if (known && known.webhook === channel?.webhook) return { unreadable: null, receivedAtMs: known.receivedAtMs }
    const entry = await row.owned.inbox.get(row.number)
    if (!entry || entry.endedAtMs !== null) return undefined
    const read = await readMessage(channel, entry)
    if ('message' in read) {
      // Kept at once, so that a change of the message that comes later removes it again.
      this.#arrived.add(row.number, read.message)
      return read.message
    }
    if (channel) this.#unreadable.set(row, { webhook: channel.webhook, receivedAtMs: entry.receivedAtMs })
    return { ...read, receivedAtMs: entry.receivedAtMs }
  }

  /** A message that its channel does not find in its request any more waits for another configuration, and is given up at last. */
  async outcome({ number, channel, owned, interruptions }: OwnedRow, found: Unreadable): Promise<JobOutcome> {
    const { clock, features, log } = this.#options
    const { unreadable, receivedAtMs } = found
    const nowMs = clock.nowMs()
    if (ageMs(clock, receivedAtMs) >= features.config().max_age_hours * HOUR_MS) {
      const error = unreadable ?? noSuchMessage(channel)
      return this.#attempts.giveUp(owned, { number, channel, attempts: interruptions }, { error })
    }
    if (unreadable !== null) log.error('stored message cannot be read', { channel, inbox: number, reason: unreadable })
    return { retryAtMs: nowMs + ABSENT_DELAY_MS }
  }
}

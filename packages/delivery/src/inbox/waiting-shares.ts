/** What each sender has waiting: a message counts until its turn begins, and one beyond the share of its sender ends as `limited`. */
import type { ExceededShare, Held, LimitedClient } from '@sluice/agent'
import type { Inbound, WaitingMessage } from '@sluice/sdk'
import { channelNamed, type DeliveryOptions } from '../delivery-options.ts'
import type { JobPlace } from '../delivery-queue.ts'
import { clientOf } from './admit-message.ts'

export class WaitingShares {
  readonly #options: Pick<DeliveryOptions, 'features' | 'limits' | 'people'>
  /** The messages that count for the waiting turns of their senders, until their turns begin. */
  readonly #waiting = new Map<number, Held>()
  readonly #beyond = new Map<number, ExceededShare>()

  constructor(options: Pick<DeliveryOptions, 'features' | 'limits' | 'people'>) {
    this.#options = options
  }

  /** Counts a message until `release`, and returns its place in the lanes. Only one that `isNew` can be `beyond` the share of its sender. */
  take(row: WaitingMessage, { message, isNew }: { readonly message: Inbound | undefined; readonly isNew: boolean }): JobPlace | 'beyond' {
    const { shares } = this.#options.limits
    const client = this.#clientOf(row, message)
    const { sender: writer } = row
    if (!client) return { writer }
    const bytes = message?.text.length ?? 0
    const mayEnd = isNew && (row.kind === 'turn' || row.kind === 'procedure_event')
    const exceeded = mayEnd ? shares.exceededBy(client, bytes) : undefined
    if (exceeded) {
      this.#beyond.set(row.number, exceeded)
      return 'beyond'
    }
    this.#waiting.set(row.number, shares.countWaiting(client, bytes))
    return { isPrior: client.standing === 'operator', sharing: shares.runningOf(client), writer }
  }

  /** Returns the share that has no room for a message. */
  beyond(number: number): ExceededShare | undefined {
    return this.#beyond.get(number)
  }

  /** Counts a message no more, because its turn begins. */
  begins(number: number): void {
    this.#waiting.get(number)?.release()
    this.#waiting.delete(number)
  }

  /** Forgets a message that has left the queue, or did not enter it. */
  release(number: number): void {
    this.begins(number)
    this.#beyond.delete(number)
  }

  #clientOf(row: WaitingMessage, message: Inbound | undefined): LimitedClient | undefined {
    const { features, limits, people } = this.#options
    const channel = channelNamed(features, row.channel)
    // Only the message says whether it proves its sender. Until it is read, no sender goes first as an operator.
    const client = channel && (message ? clientOf(channel, message, limits.operators(channel.name)) : clientOf(channel, row, []))
    if (!client || message) return client && people.principal(client)
    const { person } = people.principal(client)
    return { ...client, ...(person !== undefined && { person }) }
  }
}

/**
 * Tells the people of a shared room that their messages wait long behind those of others. The sender of a message whose own turn failed, and
 * is tried again, is told by that attempt.
 */
import { every } from '@sluice/kit'
import { isLeaseLost, type OwnedStore, sharedRoom, type WaitingMessage } from '@sluice/sdk'
import { channelNamed } from '../delivery-options.ts'
import { waitingReplies } from '../delivery-queue.ts'
import { principalOf } from './admit-message.ts'
import type { Attempts } from './attempts.ts'
import { isOwnMessage } from './pieces.ts'
import { withMessage } from './read-message.ts'
import { mayBeSilent, reasonToEnd } from './rooms.ts'
import { isMuted } from './session-settings.ts'
import type { InboxWorkerOptions } from './worker-options.ts'

const LOOK_MS = 1000

interface Waiter {
  readonly row: WaitingMessage
  readonly owned: OwnedStore
  /** When the message entered the queue, by the monotonic clock. */
  readonly sinceMs: number
}

export class LongWaits {
  readonly #options: InboxWorkerOptions
  readonly #attempts: Pick<Attempts, 'newsFor'>
  /** By the number of the message, oldest first. */
  readonly #waiting = new Map<number, Waiter>()

  constructor(options: InboxWorkerOptions, attempts: Pick<Attempts, 'newsFor'>) {
    this.#options = options
    this.#attempts = attempts
    void every(options.clock, LOOK_MS, options.stopping, () => this.#look())
  }

  /** Watches a message that has entered the queue. */
  add(row: WaitingMessage, owned: OwnedStore): void {
    if (row.kind !== 'turn' || !sharedRoom(row.lane)) return
    this.#waiting.set(row.number, { row, owned, sinceMs: this.#options.clock.monotonicMs() })
  }

  /** Forgets a message that has left the queue. */
  left(number: number): void {
    this.#waiting.delete(number)
  }

  /** Tells the senders of messages that have waited for `notice_after_secs`. */
  #look(): void {
    const { clock, features, log } = this.#options
    const { notice_after_secs } = features.config()
    if (notice_after_secs === 0) return
    const untilMs = clock.monotonicMs() - notice_after_secs * 1000
    for (const [number, waiter] of this.#waiting) {
      if (waiter.sinceMs > untilMs) return
      this.#waiting.delete(number)
      this.#tell(waiter).catch((error: unknown) => {
        if (!isLeaseLost(error))
          log.warn('a sender is not told that a message waits', { channel: waiter.row.channel, inbox: number, error })
      })
    }
  }

  async #tell({ row: { number, channel: name, lane, sender }, owned }: Waiter): Promise<void> {
    const { clock, features, onReplies, rooms } = this.#options
    const channel = channelNamed(features, name)
    const messages = await owned.inbox.ofSession(lane)
    const own = messages.find((one) => one.number === number)
    const before = messages.filter((one) => one.number < number)
    // The first message of a person that waits is told for all of them.
    const isBehindOthers = before.length > 0 && before.every((one) => one.sender !== sender)
    if (!channel || !own || own.turnId !== null || isOwnMessage(own) || !isBehindOthers) return
    const found = await owned.inbox.get(number)
    const message = found && (await withMessage(features.channels(), found)).message
    const room = message ? await rooms.of(channel, message, lane) : undefined
    // What may end without an answer does so without a notice.
    if (!message || (room && reasonToEnd(channel, room, message) !== undefined) || mayBeSilent(channel, message, room)) return
    const { standing } = await principalOf(this.#options, channel, message)
    if (await isMuted(owned, lane, standing, clock.nowMs())) return
    const news = this.#attempts.newsFor({ channel: name, lane, message }, 'waiting')
    const numbers = news && (await owned.outbox.addNews(news))
    if (numbers) onReplies(waitingReplies(news.notice, numbers))
  }
}

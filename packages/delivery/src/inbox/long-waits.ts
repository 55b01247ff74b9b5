/**
 * Tells a shared room that messages wait long behind those of others: as a reply to the first one, because all people read it. The sender of a
 * message whose own turn failed, and is tried again, is told by that attempt.
 */
import { every } from '@sluice/kit'
import { isLeaseLost, type OwnedStore, type SessionMessage, sharedRoom, type WaitingMessage } from '@sluice/sdk'
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

  /** Tells the rooms in which messages have waited for `notice_after_secs`. */
  #look(): void {
    const { clock, features, log } = this.#options
    const { notice_after_secs } = features.config()
    if (notice_after_secs === 0) return
    const untilMs = clock.monotonicMs() - notice_after_secs * 1000
    const late = new Map<string, Waiter[]>()
    for (const [number, waiter] of this.#waiting) {
      if (waiter.sinceMs > untilMs) break
      this.#waiting.delete(number)
      const { lane } = waiter.row
      const others = late.get(lane)
      if (others) others.push(waiter)
      else late.set(lane, [waiter])
    }
    for (const [lane, waiters] of late) {
      this.#tellRoom(lane, waiters).catch((error: unknown) => {
        if (!isLeaseLost(error)) log.warn('a room is not told that messages wait', { session: lane, error })
      })
    }
  }

  async #tellRoom(lane: string, waiters: readonly Waiter[]): Promise<void> {
    const messages = await waiters[0]?.owned.inbox.ofSession(lane)
    for (const waiter of messages ? waiters : []) if (await this.#tell(waiter, messages ?? [])) return
  }

  /** Resolves to false when the sender of this message needs no notice. */
  async #tell({ row: { number, channel: name, lane, sender }, owned }: Waiter, messages: readonly SessionMessage[]): Promise<boolean> {
    const { clock, features, onReplies, rooms } = this.#options
    const channel = channelNamed(features, name)
    const own = messages.find((one) => one.number === number)
    const before = messages.filter((one) => one.number < number)
    // The first message of a person that waits is told for all of them.
    const isBehindOthers = before.length > 0 && before.every((one) => one.sender !== sender)
    if (!channel || !own || own.turnId !== null || isOwnMessage(own) || !isBehindOthers) return false
    const found = await owned.inbox.get(number)
    const message = found && (await withMessage(features.channels(), found)).message
    const room = message ? await rooms.of(channel, message, lane) : undefined
    // What may end without an answer does so without a notice.
    if (!message || (room && reasonToEnd(channel, room, message) !== undefined) || mayBeSilent(channel, message, room)) return false
    const { standing } = await principalOf(this.#options, channel, message)
    if (await isMuted(owned, lane, standing, clock.nowMs())) return false
    const news = this.#attempts.newsFor({ channel: name, lane, message }, 'waiting')
    if (!news) return false
    const numbers = await owned.outbox.addNews(news)
    if (numbers) onReplies(waitingReplies(news.notice, numbers))
    return true
  }
}

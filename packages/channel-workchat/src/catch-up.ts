/** Reads the messages that were written while no connection was open, and delivers them. */
import { retry } from '@sluice/kit'
import { list, type Members, members, text, valueAt } from '@sluice/kit/foreign-json'
import { AppError, type Deliver, type Gap, type Host } from '@sluice/sdk'
import type { WorkchatApi } from './api.ts'
import { type Kept, type Place, placeOf, scopeOf, type WorkchatCursors } from './cursors.ts'
import { asEvent, type Bot, parseMessage, timeOf } from './parse.ts'

/** Messages older than this are not answered any more. */
const STALE_MS = 3_600_000
const PAGE = 50
const PAGES_MAX = 40
const ANSWER_BYTES_MAX = 32 * 1024 * 1024
const ATTEMPTS_MAX = 5

interface Page {
  readonly items: readonly Members[]
  readonly next: string
}

export class CatchUp {
  readonly #host: Host
  readonly #api: WorkchatApi
  readonly #cursors: WorkchatCursors
  readonly #bot: Bot
  readonly #deliver: Deliver
  readonly #onGap: (gap: Gap) => void

  /** `onGap` is called when messages are skipped. */
  constructor(host: Host, api: WorkchatApi, cursors: WorkchatCursors, bot: Bot, deliver: Deliver, onGap: (gap: Gap) => void) {
    this.#host = host
    this.#api = api
    this.#cursors = cursors
    this.#bot = bot
    this.#deliver = deliver
    this.#onGap = onGap
  }

  /** Reads every place that has a cursor. Rejects if one could not be read or stored; the next run then delivers some messages again. */
  async run(signal: AbortSignal): Promise<void> {
    const { log } = this.#host
    for (const [scope, kept] of this.#cursors.entries()) {
      if (signal.aborted) return
      try {
        await this.#deliverMissed(placeOf(scope), kept, signal)
      } catch (error) {
        if (!(error instanceof AppError) || !['invalid_request', 'forbidden'].includes(error.code)) throw error
        // The bot has left the conversation, or the app may not read the messages of groups.
        log.warn('missed messages of a conversation cannot be read', { conversation: scope, error })
        this.#onGap({ sinceMs: Number(kept.after), why: `the messages in ${scope} cannot be read (${error.message})` })
        this.#cursors.forget(scope)
      }
    }
  }

  /** Delivers the messages of a place after its position, and of threads that were opened since then. */
  async #deliverMissed(place: Place, { after, type }: Kept, signal: AbortSignal): Promise<void> {
    const staleMs = this.#host.clock.nowMs() - STALE_MS
    const found = await this.#read(place, after, signal)
    const isStale = (item: Members): boolean => Number(timeOf(item)) < staleMs
    if (found.some((item) => isStale(item) && Number(timeOf(item)) > Number(after))) {
      this.#onGap({ sinceMs: Number(after), why: `messages in ${scopeOf(place)} are more than an hour old and are skipped` })
    }
    for (const item of found) {
      const inbound = isStale(item) ? undefined : parseMessage(asEvent(item, type), this.#bot)
      if (inbound) await this.#deliver(inbound)
      this.#cursors.advance(scopeOf(place), timeOf(item))
      const thread = { chat: place.chat, thread: text(item.thread_id) }
      const isNewThread = place.thread === undefined && thread.thread !== '' && !this.#cursors.get(scopeOf(thread))
      if (isNewThread) await this.#deliverMissed(thread, { after, type }, signal)
    }
  }

  /**
   * Returns the messages since a time, oldest first. They include the same millisecond, because only some of its messages may be durable. The
   * history of a thread cannot be limited to a time, so it is read backwards.
   */
  async #read({ chat, thread }: Place, after: string, signal: AbortSignal): Promise<readonly Members[]> {
    const order =
      thread === undefined
        ? { container_id_type: 'chat', container_id: chat, sort_type: 'ByCreateTimeAsc', start_time: after.slice(0, -3) }
        : { container_id_type: 'thread', container_id: thread, sort_type: 'ByCreateTimeDesc' }
    const found: Members[] = []
    let next = ''
    for (let page = 0; page < PAGES_MAX; page++) {
      const answer = await this.#page({ ...order, page_size: String(PAGE), ...(next !== '' && { page_token: next }) }, signal)
      found.push(...answer.items.filter((item) => !isBefore(timeOf(item), after)))
      const isOver = thread !== undefined && answer.items.some((item) => isBefore(timeOf(item), after))
      next = isOver ? '' : answer.next
      if (next === '') break
    }
    if (next !== '') this.#onGap({ sinceMs: Number(after), why: `more than ${PAGES_MAX * PAGE} messages were missed in ${chat}` })
    return found.toSorted((a, b) => Number(timeOf(a)) - Number(timeOf(b)))
  }

  /** Waits for the limits of the platform. Failing instead would read all earlier pages again. */
  async #page(query: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Page> {
    const onFailure = (error: unknown, failures: number): void => {
      if (!(error instanceof AppError) || error.code !== 'rate_limited' || failures === ATTEMPTS_MAX) throw error
    }
    const call = () => this.#api.call({ method: 'GET', path: '/im/v1/messages', query, signal, answerBytesMax: ANSWER_BYTES_MAX })
    const answer = (await retry(call, { clock: this.#host.clock, signal, onFailure })) ?? {}
    return {
      items: list(answer.items)
        .map(members)
        .filter((item) => timeOf(item) !== ''),
      next: valueAt(answer, 'has_more') === true ? text(answer.page_token) : '',
    }
  }
}

const isBefore = (time: string, after: string): boolean => Number(time) < Number(after)

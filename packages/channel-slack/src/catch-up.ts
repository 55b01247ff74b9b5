/** Reads the messages that were written while no connection was open, and delivers them. */
import { retry } from '@sluice/kit'
import { list, type Members, members, text, textAt } from '@sluice/kit/foreign-json'
import { AppError, type Deliver, type Gap, type Host } from '@sluice/sdk'
import type { SlackApi } from './api.ts'
import { type Place, placeOf, type SlackCursors, scopeOf } from './cursors.ts'
import { type Bot, parseEdit, parseMessage } from './parse.ts'
import { isTimestamp, later, timestampAfter, timestampAt, timestampMs } from './timestamp.ts'

/** A part of the history of a place: the messages after one timestamp, optionally before another. */
interface Range {
  readonly after: string
  readonly until?: string
  /** The size of one page. */
  readonly limit: number
  readonly pagesMax: number
}

/** A place in the cursors, and the last message of it that is stored. */
interface Reached {
  readonly scope: string
  readonly after: string
}

/** Messages older than this are not answered any more. */
const STALE_MS = 3_600_000
/** Edits of stored messages are looked for in the newest messages of the last day. */
const EDITABLE_MS = 24 * STALE_MS
const EDITABLE_MAX = 100
const PAGE = 100
const PAGES_MAX = 20
const ANSWER_BYTES_MAX = 32 * 1024 * 1024
const ATTEMPTS_MAX = 5

export class CatchUp {
  readonly #host: Host
  readonly #api: SlackApi
  readonly #cursors: SlackCursors
  readonly #bot: Bot
  readonly #deliver: Deliver
  readonly #onGap: (gap: Gap) => void
  /** Read first, because new messages of these places wait. */
  readonly #preferred = new Set<string>()

  /** `onGap` is called when messages are skipped. */
  constructor(host: Host, api: SlackApi, cursors: SlackCursors, bot: Bot, deliver: Deliver, onGap: (gap: Gap) => void) {
    this.#host = host
    this.#api = api
    this.#cursors = cursors
    this.#bot = bot
    this.#deliver = deliver
    this.#onGap = onGap
  }

  /**
   * Reads every place that has a cursor: first the missed messages of all places, then the edits of earlier ones. Rejects if one could
   * not be read or stored; the next run then delivers some messages again.
   */
  async run(signal: AbortSignal): Promise<void> {
    const staleUntil = timestampAt(this.#host.clock.nowMs() - STALE_MS)
    const read: Reached[] = []
    for (const reached of this.#unread()) {
      if (signal.aborted) return
      const { scope, after } = reached
      const isReadable = await this.#ifReadable(scope, async (place) => {
        if (after < staleUntil && (await this.#hasMessages(place, after, staleUntil, signal))) {
          this.#onGap({ sinceMs: timestampMs(after), why: `messages in ${scope} are more than an hour old and are skipped` })
        }
        await this.#deliverMissed(place, later(after, staleUntil), signal)
      })
      if (isReadable) read.push(reached)
    }
    for (const { scope, after } of read) {
      if (signal.aborted) return
      await this.#ifReadable(scope, (place) => this.#deliverEdits(place, after, signal))
    }
  }

  /** Resolves to false for a place that is gone or that the bot has left, which is not read any more. */
  async #ifReadable(scope: string, read: (place: Place) => Promise<void>): Promise<boolean> {
    const place = placeOf(scope)
    try {
      await read(place)
      return true
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'invalid_request') throw error
      this.#host.log.warn('conversation can no longer be read', { ...place, error })
      this.#cursors.forget(scope)
      return false
    }
  }

  /** Has a place read before others that are still to be read. */
  prefer(scope: string): void {
    this.#preferred.add(scope)
  }

  /** Yields every place once. The next one is chosen when the reader asks for it. */
  *#unread(): Generator<Reached> {
    const left = new Map([...this.#cursors.entries()].map(([scope, { after }]) => [scope, after]))
    while (left.size > 0) {
      const [first = ''] = left.keys()
      const scope = [...this.#preferred].find((each) => left.has(each)) ?? first
      const after = left.get(scope) ?? ''
      left.delete(scope)
      yield { scope, after }
    }
    this.#preferred.clear()
  }

  /** Delivers the messages of a place after `after`, and those in threads that were opened since then. */
  async #deliverMissed(place: Place, after: string, signal: AbortSignal): Promise<void> {
    const { messages, hasMore } = await this.#read(place, { after, limit: PAGE, pagesMax: PAGES_MAX }, signal)
    if (hasMore) this.#onGap({ why: `more than ${PAGES_MAX * PAGE} messages were missed in ${place.channel}` })
    for (const message of messages) {
      const ts = text(message.ts)
      const inbound = parseMessage({ ...message, type: 'message', channel: place.channel }, this.#bot)
      // The message may be stored already, without its newest words.
      const edit = inbound && parseEdit(message, place.channel, this.#bot)
      for (const one of [inbound, edit]) if (one) await this.#deliver(one)
      this.#cursors.advance(scopeOf(place), ts)
      const thread = { channel: place.channel, thread: ts }
      const hasNewThread = place.thread === undefined && text(message.latest_reply) > after && !this.#cursors.get(scopeOf(thread))
      if (hasNewThread) await this.#deliverMissed(thread, after, signal)
    }
  }

  /** Delivers the edits of stored messages. The inbox knows the edits that it has stored. */
  async #deliverEdits(place: Place, until: string, signal: AbortSignal): Promise<void> {
    const after = timestampAt(this.#host.clock.nowMs() - EDITABLE_MS)
    if (until <= after) return
    // A thread is read from its oldest message on, a conversation from its newest one.
    const pagesMax = place.thread === undefined ? 1 : PAGES_MAX
    const { messages } = await this.#read(place, { after, until: timestampAfter(until), limit: PAGE, pagesMax }, signal)
    for (const message of messages.slice(-EDITABLE_MAX)) {
      const edit = parseEdit(message, place.channel, this.#bot)
      if (edit) await this.#deliver(edit)
    }
  }

  async #hasMessages(place: Place, after: string, until: string, signal: AbortSignal): Promise<boolean> {
    const { messages } = await this.#read(place, { after, until, limit: 2, pagesMax: 1 }, signal)
    return messages.length > 0
  }

  /** Returns messages, oldest first, and whether there are more than the pages have. */
  async #read(
    { channel, thread }: Place,
    { after, until, limit, pagesMax }: Range,
    signal: AbortSignal,
  ): Promise<{ readonly messages: readonly Members[]; readonly hasMore: boolean }> {
    const method = thread === undefined ? 'conversations.history' : 'conversations.replies'
    const found: Members[] = []
    let cursor = ''
    for (let page = 0; page < pagesMax; page++) {
      const args = { channel, ts: thread, oldest: after, latest: until, limit, cursor: cursor || undefined }
      const answer = await this.#callPatiently(method, args, signal)
      const messages = list(answer.messages).map(members)
      // Every page of a thread begins with its first message, which belongs to the conversation.
      found.push(...messages.filter(({ ts }) => isTimestamp(text(ts)) && text(ts) > after && ts !== thread))
      cursor = textAt(answer, 'response_metadata.next_cursor')
      if (cursor === '') break
    }
    return { messages: found.toSorted((a, b) => (text(a.ts) < text(b.ts) ? -1 : 1)), hasMore: cursor !== '' }
  }

  /** Waits for Slack's rate limits, which are strict for reading. Failing instead would read all earlier pages again. */
  async #callPatiently(method: string, args: object, signal: AbortSignal): Promise<Members> {
    const onFailure = (error: unknown, failures: number): void => {
      if (!(error instanceof AppError) || error.code !== 'rate_limited' || failures === ATTEMPTS_MAX) throw error
    }
    const call = () => this.#api.call(method, { ...args }, { signal, answerBytesMax: ANSWER_BYTES_MAX })
    return (await retry(call, { clock: this.#host.clock, signal, onFailure })) ?? {}
  }
}

/** Reads the messages that were written while no connection was open, and delivers them. */
import { list, type Members, members, text, textAt } from '@sluice/kit/foreign-json'
import { AppError, type Deliver, type Host } from '@sluice/sdk'
import type { Cursor, Cursors, Place } from './cursors.ts'
import { type Bot, parseMessage } from './parse.ts'
import type { SlackApi } from './slack-api.ts'
import { isTimestamp, later, timestampAt } from './timestamp.ts'

/** A part of the history of a place: the messages after one timestamp, optionally before another. */
interface Range {
  readonly after: string
  readonly until?: string
  /** The size of one page. */
  readonly limit: number
  readonly pagesMax: number
}

/** Messages older than this are not answered any more. */
const STALE_MS = 3_600_000
const PAGE = 100
const PAGES_MAX = 20
const ANSWER_BYTES_MAX = 32 * 1024 * 1024
const ATTEMPTS_MAX = 5
const WAIT_SECS_MAX = 120
const WAIT_SECS_DEFAULT = 30

export class CatchUp {
  readonly #host: Host
  readonly #api: SlackApi
  readonly #cursors: Cursors
  readonly #bot: Bot
  readonly #deliver: Deliver

  constructor(host: Host, api: SlackApi, cursors: Cursors, bot: Bot, deliver: Deliver) {
    this.#host = host
    this.#api = api
    this.#cursors = cursors
    this.#bot = bot
    this.#deliver = deliver
  }

  /**
   * Reads every place that has a cursor. Rejects if one could not be read or stored; the next run then delivers some messages
   * again.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#host
    const staleUntil = timestampAt(clock.nowMs() - STALE_MS)
    const skipped: string[] = []
    for (const cursor of this.#cursors.list()) {
      if (signal.aborted) return
      try {
        if (cursor.upTo < staleUntil && (await this.#hasMessages(cursor, staleUntil, signal))) skipped.push(cursor.channel)
        await this.#deliverMissed(cursor, later(cursor.upTo, staleUntil), signal)
      } catch (error) {
        if (!(error instanceof AppError) || error.code !== 'invalid_request') throw error
        log.warn('conversation can no longer be read', { ...placeOf(cursor), error })
        this.#cursors.forget(cursor)
      }
    }
    if (skipped.length > 0) log.warn('skipped missed messages that are more than an hour old', { channels: [...new Set(skipped)] })
  }

  /** Delivers the messages of a place after `after`, and those in threads that were opened since then. */
  async #deliverMissed(place: Place, after: string, signal: AbortSignal): Promise<void> {
    const messages = await this.#read(place, { after, limit: PAGE, pagesMax: PAGES_MAX }, signal)
    const followed = new Set(this.#cursors.list().map(({ channel, thread }) => `${channel}/${thread}`))
    for (const message of messages) {
      const ts = text(message.ts)
      const inbound = parseMessage({ ...message, type: 'message', channel: place.channel }, this.#bot)
      if (inbound) await this.#deliver(inbound)
      this.#cursors.advance(placeOf(place), ts)
      const hasNewThread = place.thread === undefined && text(message.latest_reply) > after && !followed.has(`${place.channel}/${ts}`)
      if (hasNewThread) await this.#deliverMissed({ channel: place.channel, thread: ts }, after, signal)
    }
  }

  async #hasMessages(cursor: Cursor, until: string, signal: AbortSignal): Promise<boolean> {
    const messages = await this.#read(cursor, { after: cursor.upTo, until, limit: 2, pagesMax: 1 }, signal)
    return messages.length > 0
  }

  /** Returns messages, oldest first. */
  async #read({ channel, thread }: Place, { after, until, limit, pagesMax }: Range, signal: AbortSignal): Promise<readonly Members[]> {
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
    if (cursor !== '' && pagesMax === PAGES_MAX) this.#host.log.warn('too many messages were missed: the rest is skipped', { channel })
    return found.toSorted((a, b) => (text(a.ts) < text(b.ts) ? -1 : 1))
  }

  /** Waits for Slack's rate limits, which are strict for reading. Failing instead would read all earlier pages again. */
  async #callPatiently(method: string, args: object, signal: AbortSignal): Promise<Members> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#api.call(method, { ...args }, { signal, answerBytesMax: ANSWER_BYTES_MAX })
      } catch (error) {
        if (!(error instanceof AppError) || error.code !== 'rate_limited' || attempt === ATTEMPTS_MAX) throw error
        await this.#host.clock.sleep(Math.min(error.retryAfterSecs ?? WAIT_SECS_DEFAULT, WAIT_SECS_MAX) * 1000, signal)
      }
    }
  }
}

const placeOf = ({ channel, thread }: Place): Place => ({ channel, ...(thread !== undefined && { thread }) })

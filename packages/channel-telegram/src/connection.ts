/** Polls for updates. A poll confirms all earlier updates to Telegram, so the next one starts only when these are durable. */
import { members, text } from '@sluice/kit/foreign-json'
import { AppError, type Deliver, type Host, type ListenContext } from '@sluice/sdk'
import { type BotApi, isBadToken } from './api.ts'
import type { PollCursor } from './cursor.ts'
import { Intake } from './intake.ts'
import type { KnownNames } from './known-names.ts'
import type { Bot } from './mention.ts'

const BATCH_MAX = 100
/** The first batch of a connection, which a large batch may have broken before. */
const FIRST_BATCH_MAX = 10
/** How long the server holds a poll while it has no update. */
const HOLD_SECS = 30
const POLL_MS_MAX = 45_000
/** A hundred messages of the maximum length, each quoting another one. */
const BATCH_BYTES_MAX = 32 * 1_048_576
const ANSWER_MS_MAX = 5000
/** The shortest time between two empty polls, for servers that do not hold a poll. */
const HELD_MS_MIN = 1000
const ALLOWED_UPDATES = ['message', 'edited_message', 'callback_query'] as const
/** How long the channel waits for the further members of an album. */
const ALBUM_MS = 1000
/** The server continues the poll of another program for 30 seconds after that program has ended. */
const OTHER_POLLER_SECS = 35

export class Connection {
  readonly #host: Host
  readonly #api: BotApi
  readonly #names: KnownNames
  readonly #cursor: PollCursor
  readonly #mentionOnly: boolean
  /** Kept across connections, because it counts the refusals of an update. */
  #intake: Intake | undefined
  /**
   * The id of the first update that is not durable; undefined if none is to be confirmed. After a week without updates the
   * server continues with any id, even a smaller one.
   */
  #offset: number | undefined
  /** Settles when the queries of the previous batch are answered. */
  #answering: Promise<void> = Promise.resolve()

  constructor(host: Host, api: BotApi, names: KnownNames, cursor: PollCursor, mentionOnly: boolean) {
    this.#host = host
    this.#api = api
    this.#names = names
    this.#cursor = cursor
    this.#mentionOnly = mentionOnly
  }

  /** See `Channel.listen`. Polls until a poll fails or an update cannot be taken. */
  async listen(deliver: Deliver, { signal, report }: ListenContext): Promise<void> {
    try {
      this.#intake ??= await this.#createIntake(signal)
      const take = { intake: this.#intake, deliver, event: report.event, gap: report.gap, signal }
      // The first poll returns at once, so that the health recovers without delay.
      await this.#poll(take, { limit: FIRST_BATCH_MAX, timeout: 0 })
      report.connected()
      while (!signal.aborted) await this.#poll(take, { limit: BATCH_MAX, timeout: HOLD_SECS })
    } catch (error) {
      if (!signal.aborted) throw reasonOf(error)
    }
  }

  async #createIntake(signal: AbortSignal): Promise<Intake> {
    await this.#names.load()
    return new Intake(this.#host, this.#names, await this.#identify(signal), this.#mentionOnly)
  }

  async #identify(signal: AbortSignal): Promise<Bot> {
    const me = members(await this.#api.call('getMe', {}, { signal }))
    const bot = { id: String(me.id ?? ''), username: text(me.username) }
    if (bot.id === '' || bot.username === '') throw new AppError('upstream', 'telegram did not return the id and name of the bot')
    return bot
  }

  async #poll(take: Taking, size: { readonly limit: number; readonly timeout: number }): Promise<void> {
    const { clock } = this.#host
    const { signal } = take
    const startedMs = clock.monotonicMs()
    const batch = await this.#api.call(
      'getUpdates',
      { ...(this.#offset !== undefined && { offset: this.#offset }), ...size, allowed_updates: ALLOWED_UPDATES },
      { signal, timeoutMs: POLL_MS_MAX, answerBytesMax: BATCH_BYTES_MAX },
    )
    if (!Array.isArray(batch)) throw new AppError('upstream', 'telegram answered getUpdates without a list')
    const gap = this.#cursor.polled(clock.nowMs())
    if (gap) take.gap(gap)
    this.#offset = undefined
    const count = take.intake.countOf(batch)
    await this.#takeBatch(batch.slice(0, count), take)
    if (count < batch.length) {
      // Telegram keeps the updates from this one on, so that they come again with the rest of the album, also after a crash.
      this.#offset ??= idOf(batch[count])
      await clock.sleep(ALBUM_MS, signal)
    }
    const isEmpty = batch.length === 0
    if (!isEmpty && this.#offset === undefined) throw new AppError('upstream', 'telegram sent updates without their ids')
    if (isEmpty && size.timeout > 0 && clock.monotonicMs() - startedMs < HELD_MS_MIN) await clock.sleep(HELD_MS_MIN, signal)
  }

  /** Takes the updates in order, and moves the offset past each one that is durable or ignored. */
  async #takeBatch(batch: readonly unknown[], { intake, deliver, event, signal }: Taking): Promise<void> {
    const queries: string[] = []
    try {
      for (const update of batch) {
        const id = idOf(update)
        if (id === undefined) continue
        const taken = await intake.take(update, id, deliver)
        this.#offset = id + 1
        if (taken === 'ignored') continue
        if (taken.inbound) event()
        if (taken.query !== undefined) queries.push(taken.query)
        if (signal.aborted) return
      }
    } finally {
      await this.#answering
      if (queries.length > 0) this.#answering = this.#answerQueries(queries, signal)
    }
  }

  /** Ends the progress indicator of pressed buttons. Telegram itself ends it after a while, so a failure is only logged. */
  async #answerQueries(queries: readonly string[], signal: AbortSignal): Promise<void> {
    const answers = queries.map((callback_query_id) =>
      this.#api.call('answerCallbackQuery', { callback_query_id }, { signal, timeoutMs: ANSWER_MS_MAX }),
    )
    for (const answer of await Promise.allSettled(answers)) {
      if (answer.status === 'rejected' && !signal.aborted) {
        this.#host.log.debug('button press not answered', { channel: 'telegram', error: answer.reason })
      }
    }
  }
}

function idOf(update: unknown): number | undefined {
  const { update_id: id } = members(update)
  return Number.isSafeInteger(id) ? Number(id) : undefined
}

/** The work of one connection on its updates. */
interface Taking {
  readonly intake: Intake
  readonly deliver: Deliver
  /** Reports that a message arrived. */
  readonly event: () => void
  /** Reports that messages may be missing. */
  readonly gap: ListenContext['report']['gap']
  readonly signal: AbortSignal
}

/** Says of a failure whether only the operator can help, and how long to wait for another poller to end. */
function reasonOf(error: unknown): unknown {
  if (!(error instanceof AppError)) return error
  if (isBadToken(error)) return new AppError('forbidden', error.message, { cause: error.cause })
  return error.code === 'conflict' ? new AppError('conflict', error.message, { retryAfterSecs: OTHER_POLLER_SECS }) : error
}

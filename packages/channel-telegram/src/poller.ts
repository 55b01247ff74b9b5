/** Polls for updates. A poll confirms all earlier updates to Telegram, so the next one starts only when these are durable. */
import { askedDelayMs, backoffMs } from '@sluice/kit'
import { members, text } from '@sluice/kit/foreign-json'
import { AppError, type ChannelHealth, type Deliver, errorText, type Host } from '@sluice/sdk'
import { type BotApi, isBadToken } from './bot-api.ts'
import { Intake } from './intake.ts'
import type { KnownNames } from './known-names.ts'
import type { Bot } from './mention.ts'

const BATCH_MAX = 100
/** The batch after a failure, which a large batch may have caused. */
const FIRST_BATCH_MAX = 10
/** How long the server holds a poll while it has no update. */
const HOLD_SECS = 30
const POLL_MS_MAX = 45_000
/** A hundred messages of the maximum length, each quoting another one. */
const BATCH_BYTES_MAX = 32 * 1_048_576
const ANSWER_MS_MAX = 5000
/** The shortest time between two empty polls, for servers that do not hold a poll. */
const HELD_MS_MIN = 1000
const ALLOWED_UPDATES = ['message', 'callback_query'] as const

const ASKED_MS_MAX = 3_600_000
/** The server continues the poll of another program for 30 seconds after that program has ended. */
const OTHER_POLLER_MS = 35_000
/** The delay after a bad token, which only the operator can correct. A new token builds a new channel. */
const BAD_TOKEN_MS = 600_000

/**
 * Returns the delay in milliseconds after `failures` earlier failures. It is never shorter than the server or the inbox asked
 * for.
 */
function retryDelayMs(error: unknown, failures: number): number {
  if (isBadToken(error)) return BAD_TOKEN_MS
  if (error instanceof AppError && error.code === 'conflict') return OTHER_POLLER_MS
  return Math.max(backoffMs(failures, { firstMs: 1000, longestMs: 30_000 }), askedDelayMs(error, ASKED_MS_MAX))
}

export class Poller {
  readonly #host: Host
  readonly #api: BotApi
  readonly #names: KnownNames
  readonly #mentionOnly: boolean
  #health: ChannelHealth = { state: 'connecting' }
  /**
   * The id of the first update that is not durable; undefined if none is to be confirmed. After a week without updates the
   * server continues with any id, even a smaller one.
   */
  #offset: number | undefined
  /** Settles when the queries of the previous batch are answered. */
  #answering: Promise<void> = Promise.resolve()

  constructor(host: Host, api: BotApi, names: KnownNames, mentionOnly: boolean) {
    this.#host = host
    this.#api = api
    this.#names = names
    this.#mentionOnly = mentionOnly
  }

  /** See `Channel.listen`. Tries again after failures, with growing delays, and resolves soon after `signal` aborts. */
  async listen(deliver: Deliver, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#host
    let intake: Intake | undefined
    for (let failures = 0; !signal.aborted; ) {
      try {
        intake ??= await this.#createIntake(deliver, signal)
        await this.#poll(intake, signal)
        failures = 0
      } catch (error) {
        if (signal.aborted) return
        const { detail: _, ...known } = this.#health
        this.#health = { ...known, state: 'down', detail: errorText(error) }
        log.warn('telegram updates not taken, trying again', { error })
        await clock.sleep(retryDelayMs(error, failures++), signal)
      }
    }
  }

  /** See `Channel.health`. */
  health(): ChannelHealth {
    return this.#health
  }

  async #createIntake(deliver: Deliver, signal: AbortSignal): Promise<Intake> {
    this.#offset = undefined
    await this.#names.load()
    return new Intake(this.#host, this.#names, deliver, await this.#identify(signal), this.#mentionOnly)
  }

  async #identify(signal: AbortSignal): Promise<Bot> {
    const me = members(await this.#api.call('getMe', {}, { signal }))
    const bot = { id: String(me.id ?? ''), username: text(me.username) }
    if (bot.id === '' || bot.username === '') throw new AppError('upstream', 'telegram did not return the id and name of the bot')
    return bot
  }

  async #poll(intake: Intake, signal: AbortSignal): Promise<void> {
    const { clock } = this.#host
    // The first poll after a failure returns at once, so that the health recovers without delay.
    const [limit, timeout] = this.#health.state === 'ok' ? [BATCH_MAX, HOLD_SECS] : [FIRST_BATCH_MAX, 0]
    const startedMs = clock.monotonicMs()
    const batch = await this.#api.call(
      'getUpdates',
      { ...(this.#offset !== undefined && { offset: this.#offset }), limit, timeout, allowed_updates: ALLOWED_UPDATES },
      { signal, timeoutMs: POLL_MS_MAX, answerBytesMax: BATCH_BYTES_MAX },
    )
    if (!Array.isArray(batch)) throw new AppError('upstream', 'telegram answered getUpdates without a list')
    this.#offset = undefined
    await this.#takeBatch(batch, intake, signal)
    const isEmpty = batch.length === 0
    if (!isEmpty && this.#offset === undefined) throw new AppError('upstream', 'telegram sent updates without their ids')
    if (isEmpty && timeout > 0 && clock.monotonicMs() - startedMs < HELD_MS_MIN) await clock.sleep(HELD_MS_MIN, signal)
    const { detail: _, ...known } = this.#health
    this.#health = { ...known, state: 'ok' }
  }

  /** Takes the updates in order, and moves the offset past each one that is durable or ignored. */
  async #takeBatch(batch: readonly unknown[], intake: Intake, signal: AbortSignal): Promise<void> {
    const queries: string[] = []
    try {
      for (const update of batch) {
        const id = members(update).update_id
        if (!Number.isSafeInteger(id)) continue
        const taken = await intake.take(update, Number(id))
        this.#offset = Number(id) + 1
        if (taken === 'ignored') continue
        if (taken.inbound) this.#health = { ...this.#health, lastEventAtMs: this.#host.clock.nowMs() }
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

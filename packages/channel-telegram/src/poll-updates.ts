/** The loop that polls: an update is confirmed by asking for the next ones, which happens only once it is durable. */

import { members, text } from '@sluice/kit/foreign-json'
import { AppError, type ChannelHealth, type Deliver, errorText, type Host } from '@sluice/sdk'
import { type BotApi, listOf } from './bot-api.ts'
import { createHandOver, type HandOver } from './hand-over.ts'
import type { KnownNames } from './known-names.ts'
import type { Bot } from './mention.ts'
import { pauseMs } from './pause.ts'

export interface Poller {
  /** Resolves soon after `signal` aborts; failures are tried again with growing pauses. */
  listen(deliver: Deliver, signal: AbortSignal): Promise<void>
  health(): Pick<ChannelHealth, 'state' | 'detail' | 'lastEventAtMs'>
}

export interface PollerOptions {
  readonly host: Pick<Host, 'clock' | 'log'>
  readonly api: BotApi
  readonly names: KnownNames
  readonly mentionOnly: boolean
}

const BATCH_MAX = 100
/** After a failure, which may have been that a batch is too large. */
const FIRST_BATCH_MAX = 10
/** How long the server holds a poll for which it has nothing. */
const HOLD_SECS = 30
const POLL_MS_MAX = 45_000
/** A hundred of the longest messages, each quoting another of that kind. */
const BATCH_BYTES_MAX = 32 * 1_048_576
const ANSWER_MS_MAX = 5000
/** A server that holds no poll must not be asked all the time. */
const HELD_MS_MIN = 1000
const ALLOWED_UPDATES = ['message', 'callback_query'] as const

export function createPoller({ host, api, names, mentionOnly }: PollerOptions): Poller {
  const { clock, log } = host
  let state: ChannelHealth['state'] = 'connecting'
  let detail: string | undefined
  let lastEventAtMs: number | undefined

  const whoAmI = async (signal: AbortSignal): Promise<Bot> => {
    const me = members(await api.call('getMe', {}, { signal }))
    const bot = { id: String(me.id ?? ''), username: text(me.username) }
    if (bot.id === '' || bot.username === '') throw new AppError('upstream', 'telegram does not say who the bot is')
    return bot
  }

  /** Buttons stop turning; one that is too old has stopped by itself. */
  const answerQueries = async (queries: readonly string[], signal: AbortSignal): Promise<void> => {
    const answers = queries.map((callback_query_id) =>
      api.call('answerCallbackQuery', { callback_query_id }, { signal, timeoutMs: ANSWER_MS_MAX }),
    )
    for (const { status, reason } of (await Promise.allSettled(answers)) as PromiseRejectedResult[]) {
      if (status === 'rejected' && !signal.aborted) log.debug('the press of a button was not answered', { error: reason })
    }
  }

  /** Polls from the first update that is not durable on. */
  const createPoll = (bot: Bot, handOver: HandOver, signal: AbortSignal): (() => Promise<void>) => {
    /** Absent while nothing is to be confirmed: after a week of silence the server goes on from any number, a smaller one too. */
    let offset: number | undefined
    let answering: Promise<void> = Promise.resolve()

    const take = async (batch: readonly unknown[]): Promise<void> => {
      const queries: string[] = []
      try {
        for (const update of batch) {
          const id = members(update).update_id
          if (!Number.isSafeInteger(id)) continue
          const taken = await handOver(update, Number(id), { bot, mentionOnly })
          offset = Number(id) + 1
          if (taken === 'ignored') continue
          if (taken.inbound) lastEventAtMs = clock.nowMs()
          if (taken.query !== undefined) queries.push(taken.query)
          if (signal.aborted) return
        }
      } finally {
        await answering
        if (queries.length > 0) answering = answerQueries(queries, signal)
      }
    }

    return async () => {
      // The first poll after a failure comes back at once, to tell that all is well.
      const [limit, timeout] = state === 'ok' ? [BATCH_MAX, HOLD_SECS] : [FIRST_BATCH_MAX, 0]
      const startedMs = clock.monotonicMs()
      const batch = listOf(
        await api.call(
          'getUpdates',
          { ...(offset !== undefined && { offset }), limit, timeout, allowed_updates: ALLOWED_UPDATES },
          { signal, timeoutMs: POLL_MS_MAX, answerBytesMax: BATCH_BYTES_MAX },
        ),
        'getUpdates',
      )
      offset = undefined
      await take(batch)
      const isEmpty = batch.length === 0
      if (!isEmpty && offset === undefined) throw new AppError('upstream', 'telegram sent updates without their ids')
      if (isEmpty && timeout > 0 && clock.monotonicMs() - startedMs < HELD_MS_MIN) await clock.sleep(HELD_MS_MIN, signal)
      state = 'ok'
      detail = undefined
    }
  }

  return {
    async listen(deliver, signal) {
      const handOver = createHandOver({ host, names, deliver })
      let poll: (() => Promise<void>) | undefined
      for (let failures = 0; !signal.aborted; ) {
        try {
          if (!poll) {
            await names.load()
            poll = createPoll(await whoAmI(signal), handOver, signal)
          }
          await poll()
          failures = 0
        } catch (error) {
          if (signal.aborted) return
          state = 'down'
          detail = errorText(error)
          log.warn('the updates of telegram could not be taken; trying again', { error })
          await clock.sleep(pauseMs(error, failures++), signal)
        }
      }
    },
    health: () => ({ state, ...(detail !== undefined && { detail }), ...(lastEventAtMs !== undefined && { lastEventAtMs }) }),
  }
}

/** The update queue of the telegram fake. Updates stay until a later offset confirms them, and one poller is served at a time. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ProviderReply } from '@sluice/testkit/fake-provider'
import { fromNumber, type Params, refusal, result } from './fake-wire.ts'

/** An update with the content of its type. */
export interface TelegramUpdate {
  readonly update_id: number
  readonly [type: string]: unknown
}

/** The queue of updates. */
export interface TelegramUpdates {
  /** Queues an update, unless the bot did not ask for its type. */
  add(type: string, content: object): void
  /** Answers `getUpdates`. */
  poll(params: Params): Promise<ProviderReply>
  /** The unconfirmed updates, oldest first. */
  readonly waiting: readonly TelegramUpdate[]
  /** Sets the id of the next update, as the server does after a week without updates. */
  renumber(next: number): void
  /** Ends the current poll as if its time were over. */
  lapse(): void
  /** Whether a poll is waiting. */
  readonly polled: boolean
}

const BATCH_MAX = 100
const TIMEOUT_SECS_MAX = 50
const WAITING_MAX = 100_000

/** Creates an empty queue. */
export function createTelegramUpdates(): TelegramUpdates {
  let waiting: TelegramUpdate[] = []
  let lastId = 900_000
  /** The requested types, which the server remembers between polls. */
  let wanted: readonly string[] | undefined
  let poller: AbortController | undefined
  let wake = Promise.withResolvers<void>()
  let lapsed = Promise.withResolvers<void>()

  const from = (offset: number): TelegramUpdate[] => {
    // A negative offset counts from the end and drops the earlier updates.
    if (offset < 0) waiting = waiting.slice(offset)
    if (offset > 0) waiting = waiting.filter(({ update_id }) => update_id >= offset)
    return waiting
  }

  return {
    get waiting() {
      return waiting
    },
    get polled() {
      return poller !== undefined
    },
    lapse() {
      lapsed.resolve()
      lapsed = Promise.withResolvers()
    },
    renumber(next) {
      lastId = next - 1
    },
    add(type, content) {
      if (wanted && !wanted.includes(type)) return
      waiting.push({ update_id: ++lastId, [type]: content })
      if (waiting.length > WAITING_MAX) waiting.shift()
      wake.resolve()
      wake = Promise.withResolvers()
    },
    async poll(params) {
      if (Array.isArray(params.allowed_updates)) wanted = params.allowed_updates.length > 0 ? params.allowed_updates.map(String) : undefined
      poller?.abort()
      const mine = new AbortController()
      poller = mine
      const limit = Math.min(BATCH_MAX, fromNumber(params.limit) || BATCH_MAX)
      const ms = Math.min(TIMEOUT_SECS_MAX, fromNumber(params.timeout)) * 1000
      const late = sleep(ms, undefined, { signal: mine.signal, ref: false }).catch(() => undefined)
      const isLate = Promise.race([late, lapsed.promise]).then(() => true)
      const offset = fromNumber(params.offset)
      let found = from(offset)
      while (found.length === 0 && !(await Promise.race([wake.promise.then(() => false), isLate]))) {
        found = waiting.filter(({ update_id }) => update_id >= offset)
      }
      if (mine.signal.aborted) {
        return refusal(409, 'Conflict: terminated by other getUpdates request; make sure that only one bot instance is running')
      }
      poller = undefined
      mine.abort()
      return result(found.slice(0, limit))
    },
  }
}

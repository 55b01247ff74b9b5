/** Keeps the mailbox subscribed (§8: seven days, renewed before): every day, and soon again where that fails. */
import { type Clock, errorText } from '@sluice/sdk'
import { pauseMs } from './backoff.ts'
import type { MailApi, Subscription } from './mail-api.ts'

export interface Watch {
  /** Milliseconds until `renew` has something to do. */
  dueInMs(): number
  /** Subscribes, whether or not that is due; resolves to the mailbox's history id. */
  subscribe(signal: AbortSignal): Promise<bigint>
  /** Subscribes if that is due. What goes wrong is told by `problem`, as mails can be fetched without. */
  renew(signal: AbortSignal): Promise<void>
  /** Why the last attempt failed; undefined if it did not. */
  problem(): string | undefined
}

const DAY_MS = 24 * 3_600_000
/** A subscription that is about to end is not renewed more often than that. */
const SOONEST_MS = 60_000

export function createWatch(clock: Clock, api: Pick<MailApi, 'watch'>, subscription: Subscription): Watch {
  let dueAtMs = Number.NEGATIVE_INFINITY
  let failures = 0
  let problem: string | undefined

  const subscribe = async (signal: AbortSignal): Promise<bigint> => {
    try {
      const { historyId, expiresAtMs } = await api.watch(subscription, signal)
      const nowMs = clock.nowMs()
      dueAtMs = nowMs + Math.max(SOONEST_MS, Math.min(DAY_MS, (expiresAtMs - nowMs) / 2))
      failures = 0
      problem = undefined
      return historyId
    } catch (error) {
      dueAtMs = clock.nowMs() + pauseMs(failures++, error)
      problem = errorText(error)
      throw error
    }
  }
  return {
    subscribe,
    dueInMs: () => Math.max(0, dueAtMs - clock.nowMs()),
    async renew(signal) {
      if (clock.nowMs() >= dueAtMs) await subscribe(signal).catch(() => undefined)
    },
    problem: () => problem,
  }
}

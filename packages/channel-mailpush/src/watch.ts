/** Keeps the mailbox subscribed (§8: seven days, renewed before): every day, and soon again where that fails. */
import { errorText, type Host } from '@sluice/sdk'
import { pauseMs } from './backoff.ts'
import type { MailApi, Subscription } from './mail-api.ts'

export interface Watch {
  /** Milliseconds until `renew` has something to do. */
  dueInMs(): number
  /** Subscribes, whether or not that is due; resolves to the mailbox's history id, which it has without a subscription, too. */
  now(signal: AbortSignal): Promise<bigint>
  /** Subscribes if that is due. Never rejects, as mails can be fetched without; what goes wrong is logged, and told by `problem`. */
  renew(signal: AbortSignal): Promise<void>
  /** Why the last attempt failed; undefined if it did not. */
  problem(): string | undefined
}

const DAY_MS = 24 * 3_600_000
/** A subscription that is about to end is not renewed more often than that. */
const SOONEST_MS = 60_000
/** Of those that are logged, each once, until a subscription succeeds. */
const REASONS_MAX = 20

export function createWatch(
  { clock, log }: Pick<Host, 'clock' | 'log'>,
  api: Pick<MailApi, 'watch' | 'profile'>,
  subscription: Subscription,
): Watch {
  let dueAtMs = Number.NEGATIVE_INFINITY
  let failures = 0
  let problem: string | undefined
  const logged = new Set<string>()

  const failed = (error: unknown): void => {
    dueAtMs = clock.nowMs() + pauseMs(failures++, error)
    problem = errorText(error)
    if (logged.has(problem) || logged.size >= REASONS_MAX) return
    logged.add(problem)
    log.warn('the mailbox could not be subscribed; until it is, mails come late', { error })
  }
  const succeeded = (expiresAtMs: number): void => {
    const nowMs = clock.nowMs()
    dueAtMs = nowMs + Math.max(SOONEST_MS, Math.min(DAY_MS, (expiresAtMs - nowMs) / 2))
    if (failures > 0) log.info('the mailbox is subscribed again')
    failures = 0
    problem = undefined
    logged.clear()
  }
  const subscribe = async (signal: AbortSignal): Promise<bigint> => {
    try {
      const { historyId, expiresAtMs } = await api.watch(subscription, signal)
      succeeded(expiresAtMs)
      return historyId
    } catch (error) {
      if (!signal.aborted) failed(error)
      throw error
    }
  }

  return {
    dueInMs: () => Math.max(0, dueAtMs - clock.nowMs()),
    async now(signal) {
      try {
        return await subscribe(signal)
      } catch (error) {
        const { historyId } = await api.profile(signal)
        if (historyId === undefined) throw error
        return historyId
      }
    },
    async renew(signal) {
      // Its failure is told already.
      if (clock.nowMs() >= dueAtMs) await subscribe(signal).catch(() => undefined)
    },
    problem: () => problem,
  }
}

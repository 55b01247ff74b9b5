/** Retention: one policy for all data in the store, applied once a minute; see docs/contract.md#storage. */

import type { LoadedConfig } from '@sluice/config'
import { deliverySection, gatewaySection, sessionsSection } from '@sluice/config'
import type { Overheard, People } from '@sluice/delivery'
import { every, followClock, jumpedMs } from '@sluice/kit'
import type { Ownership } from '@sluice/ownership'
import type { Clock, DeletedRows, Logger, Retention, Store } from '@sluice/sdk'
import type { OwnedFiles } from './workspace/owned-files.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const PRUNE_MS = 60_000
const PRUNE_ROWS = 2000
/**
 * For this long after an upgrade nothing is deleted: the operator may want to go back, or to change the policy first. For as long after the
 * clock was set far ahead nothing is deleted because of its age: the clock may be wrong.
 */
const UPGRADE_HOLD_DAYS = 7
/** A machine sleeps for less, most of the time. */
const FAR_AHEAD_MS = 2 * DAY_MS
const AHEAD_OWNER = 'retention'
const AHEAD_KEY = 'clock-set-ahead'

/** The limits at this time, by the retention settings of the configuration. */
export function retentionOf(config: LoadedConfig, nowMs: number): Retention {
  const { retention_days, retention_mb, dedupe_hours } = config.core(deliverySection)
  const sessionDays = config.core(sessionsSection).retention_days
  return {
    endedBeforeMs: nowMs - retention_days * DAY_MS,
    idsBeforeMs: nowMs - dedupe_hours * HOUR_MS,
    keysBeforeMs: nowMs - config.core(gatewaySection).idempotency_ttl_secs * 1000,
    historyBeforeMs: sessionDays === 0 ? Number.NEGATIVE_INFINITY : nowMs - sessionDays * DAY_MS,
    bytesMax: retention_mb * 1024 * 1024,
    nowMs,
    limit: PRUNE_ROWS,
  }
}

/** The end of the hold that began with an upgrade, or when the clock was set ahead; undefined: there is none, or it is over. */
export function heldUntilMs(fromMs: number | null, nowMs: number): number | undefined {
  if (fromMs === null) return undefined
  const endMs = fromMs + UPGRADE_HOLD_DAYS * DAY_MS
  // A clock that was set back does not prolong the hold.
  return nowMs < endMs && nowMs >= fromMs - DAY_MS ? endMs : undefined
}

/** Deletes nothing because of its age, but values that have an expiry of their own. */
const withoutAges = (retention: Retention): Retention => ({
  ...retention,
  endedBeforeMs: Number.NEGATIVE_INFINITY,
  historyBeforeMs: Number.NEGATIVE_INFINITY,
})

/** Deletes nothing but values that have an expiry of their own. */
const withoutDeletions = (retention: Retention): Retention => ({ ...withoutAges(retention), bytesMax: Number.MAX_SAFE_INTEGER })

export interface RetentionSources {
  readonly ownership: Pick<Ownership, 'whileHolding'>
  readonly store: Pick<Store, 'keyValue' | 'prune' | 'usage'>
  readonly clock: Clock
  readonly log: Logger
  config(): LoadedConfig
  readonly files: Pick<OwnedFiles, 'sweep'>
  /** The messages that rooms have overheard. */
  readonly overheard: Pick<Overheard, 'sweep'>
  /** The links of people. */
  readonly people: Pick<People, 'sweep'>
  /** Prunes the runs of procedures until the signal aborts. */
  pruneRuns(signal: AbortSignal): Promise<void>
}

/** Prunes in the one process of the store that holds the lease for it, until the signal aborts. */
export function startRetention(sources: RetentionSources, signal: AbortSignal): void {
  const prune = async (_: unknown, held: AbortSignal): Promise<void> => {
    await Promise.all([pruneEveryMinute(sources, held), sweepEveryDay(sources, held), sources.pruneRuns(held)])
  }
  void sources.ownership.whileHolding('leader/prune', prune, signal)
}

async function pruneEveryMinute({ store, clock, log, config }: RetentionSources, signal: AbortSignal): Promise<void> {
  followClock(clock)
  const ahead = store.keyValue(AHEAD_OWNER)
  /** How far the clock was ahead when that was recorded last. */
  let recordedMs = 0
  /** Resolves to whether the clock was set far ahead lately, also in a run of the daemon before. */
  const isAhead = async (nowMs: number): Promise<boolean> => {
    const jumped = jumpedMs(clock)
    recordedMs = Math.min(recordedMs, jumped)
    if (jumped - recordedMs >= FAR_AHEAD_MS) {
      await ahead.set(AHEAD_KEY, nowMs)
      recordedMs = jumped
      log.warn('the clock was set far ahead: nothing is deleted because of its age for some days', { days: UPGRADE_HOLD_DAYS })
    }
    const fromMs = await ahead.get(AHEAD_KEY)
    return typeof fromMs === 'number' && heldUntilMs(fromMs, nowMs) !== undefined
  }
  const prune = async (): Promise<void> => {
    for (let more = true; more && !signal.aborted; ) {
      const nowMs = clock.nowMs()
      const configured = retentionOf(config(), nowMs)
      const retention = (await isAhead(nowMs)) ? withoutAges(configured) : configured
      const isHeld = heldUntilMs((await store.usage()).upgradedAtMs, nowMs) !== undefined
      more = isFull(await store.prune(isHeld ? withoutDeletions(retention) : retention))
    }
  }
  let isPruning = false
  await every(clock, PRUNE_MS, signal, () => {
    if (isPruning) return
    isPruning = true
    prune()
      .catch((error: unknown) => log.error('pruning failed', { error }))
      .finally(() => {
        isPruning = false
      })
  })
}

/** Deletes old overheard messages and old changes of links every hour, and every day, an hour after the start first, the files that no conversation names any more. */
async function sweepEveryDay({ store, files, overheard, people, clock, log }: RetentionSources, signal: AbortSignal): Promise<void> {
  let hours = 0
  await every(clock, HOUR_MS, signal, async () => {
    await overheard.sweep().catch((error: unknown) => log.error('old overheard messages are left', { error }))
    await people.sweep().catch((error: unknown) => log.error('old changes of links are left', { error }))
    if (hours++ % 24 > 0) return
    try {
      if (heldUntilMs((await store.usage()).upgradedAtMs, clock.nowMs()) === undefined) await files.sweep(signal)
    } catch (error) {
      log.error('files of deleted conversations are left', { error })
    }
  })
}

/** True if a kind reached its limit, so that there may be more rows to delete. */
const isFull = (deleted: DeletedRows): boolean => Object.values(deleted).some((count) => count >= PRUNE_ROWS)

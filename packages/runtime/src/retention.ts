/** What is kept and for how long: one policy for everything in the store. */

import type { LoadedConfig } from '@sluice/config'
import { deliverySection, gatewaySection, sessionsSection } from '@sluice/config'
import { every } from '@sluice/kit'
import type { Clock, Forgotten, Logger, Retention, Store, StoreUsage } from '@sluice/sdk'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const PRUNE_MS = 60_000
const PRUNE_ROWS = 2000
/** After an upgrade nothing is deleted for so long: its operator may want to go back, or to change the policy first. */
const UPGRADE_HOLD_DAYS = 7

/** What the configuration lets be forgotten at this moment. */
export function retentionOf(config: LoadedConfig, nowMs: number): Retention {
  const { retention_days, retention_mb, dedupe_hours } = config.core(deliverySection)
  const sessionDays = config.core(sessionsSection).retention_days
  return {
    endedBeforeMs: nowMs - retention_days * DAY_MS,
    idsBeforeMs: nowMs - dedupe_hours * HOUR_MS,
    keysBeforeMs: nowMs - config.core(gatewaySection).idempotency_ttl_secs * 1000,
    saidBeforeMs: sessionDays === 0 ? Number.NEGATIVE_INFINITY : nowMs - sessionDays * DAY_MS,
    bytesMax: retention_mb * 1024 * 1024,
    nowMs,
    limit: PRUNE_ROWS,
  }
}

/** When retention begins to delete after an upgrade; undefined: it does so already. */
export function heldUntilMs({ upgradedAtMs }: Pick<StoreUsage, 'upgradedAtMs'>, nowMs: number): number | undefined {
  if (upgradedAtMs === null) return undefined
  const endMs = upgradedAtMs + UPGRADE_HOLD_DAYS * DAY_MS
  // A clock that was set back holds nothing for longer.
  return nowMs < endMs && nowMs >= upgradedAtMs - DAY_MS ? endMs : undefined
}

/** Keeps everything; only values whose own time is over are dropped. */
const withoutDeletions = (retention: Retention): Retention => ({
  ...retention,
  endedBeforeMs: Number.NEGATIVE_INFINITY,
  saidBeforeMs: Number.NEGATIVE_INFINITY,
  bytesMax: Number.MAX_SAFE_INTEGER,
})

export interface RetentionDeps {
  readonly store: Pick<Store, 'prune' | 'usage'>
  readonly clock: Clock
  readonly log: Logger
  config(): LoadedConfig
}

/** Prunes once a minute until the signal aborts. */
export function startRetention({ store, clock, log, config }: RetentionDeps, signal: AbortSignal): void {
  const prune = async (): Promise<void> => {
    for (let more = true; more && !signal.aborted; ) {
      const nowMs = clock.nowMs()
      const retention = retentionOf(config(), nowMs)
      const isHeld = heldUntilMs(await store.usage(), nowMs) !== undefined
      more = isFull(await store.prune(isHeld ? withoutDeletions(retention) : retention))
    }
  }
  let isPruning = false
  void every(clock, PRUNE_MS, signal, () => {
    if (isPruning) return
    isPruning = true
    prune()
      .catch((error: unknown) => log.error('Old data could not be deleted.', { error }))
      .finally(() => {
        isPruning = false
      })
  })
}

/** At least one kind reached its limit, so there may be more. */
const isFull = (forgotten: Forgotten): boolean => Object.values(forgotten).some((count) => count >= PRUNE_ROWS)

/**
 * Notices tokens that stop being good, also if another process revoked them, so that open streams can end. They also end when the store
 * has not answered for a second, because their tokens may have been revoked since.
 */
import { BoundedMap, catchUpMs } from '@sluice/kit'
import type { Clock, DeviceRow, DeviceStore, Logger } from '@sluice/sdk'

/** Why a stream must end: its token is refused from now on, or the store cannot tell whether it is still good. */
export type EndOfTrust = 'revoked' | 'unknown'
export type RevocationListener = (tokenHash: string, why: EndOfTrust) => void

export interface Revocations {
  /** Watches a token that was good just now, by its hash. */
  watch(tokenHash: string, device: DeviceRow): void
  /** Checks all watched tokens now, if there is a listener. */
  check(): Promise<void>
  /** See `Auth.onRevoked`. */
  listen(listener: RevocationListener): () => void
}

const PERIOD_MS = 500
/** How long the store may leave a check without an answer. */
const UNANSWERED_MS_MAX = 1000
const TOKENS_MAX = 5000

export function createRevocations(devices: DeviceStore, clock: Clock, log: Logger): Revocations {
  /** The expiry of each watched token. */
  const watched = new BoundedMap<string, number | null>(TOKENS_MAX)
  const listeners = new Set<RevocationListener>()
  let version: number | undefined
  let polling: AbortController | undefined
  let isChecking = false
  /** When the first check began that has no answer yet. */
  let unansweredSinceMs: number | undefined
  let isFailing = false

  const end = (tokenHash: string, why: EndOfTrust): void => {
    watched.delete(tokenHash)
    for (const listener of listeners) listener(tokenHash, why)
  }

  const checkAll = async (): Promise<void> => {
    const nowMs = clock.nowMs()
    const currentVersion = await devices.version()
    const hasChanged = currentVersion !== version
    for (const [tokenHash, expiresAtMs] of [...watched.entries()]) {
      const isGone = hasChanged && !(await devices.findByTokenHash(tokenHash))
      if (isGone || (expiresAtMs !== null && expiresAtMs <= nowMs)) end(tokenHash, 'revoked')
    }
    version = currentVersion
  }

  const check = async (): Promise<void> => {
    if (listeners.size === 0) return
    try {
      await checkAll()
      unansweredSinceMs = undefined
      isFailing = false
    } catch (error) {
      if (!isFailing) log.error('check for revoked devices failed', { error })
      isFailing = true
    }
  }

  const poll = async (signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      unansweredSinceMs ??= clock.monotonicMs()
      if (!isChecking) {
        isChecking = true
        void check().finally(() => {
          isChecking = false
        })
      }
      const dueMs = clock.monotonicMs() + PERIOD_MS
      await clock.sleep(PERIOD_MS, signal)
      // After a pause of this process, an answer may have arrived that was not read yet.
      const furtherMs = catchUpMs(dueMs, clock.monotonicMs())
      if (furtherMs > 0) await clock.sleep(furtherMs, signal)
      if (unansweredSinceMs === undefined || clock.monotonicMs() - unansweredSinceMs < UNANSWERED_MS_MAX) continue
      const tokens = [...watched.entries()]
      if (tokens.length > 0) log.warn('open streams end: the store cannot tell whether their tokens are still good')
      for (const [tokenHash] of tokens) end(tokenHash, 'unknown')
    }
    unansweredSinceMs = undefined
  }

  return {
    check,
    watch(tokenHash, { expiresAtMs }) {
      if (watched.get(tokenHash) !== expiresAtMs) watched.set(tokenHash, expiresAtMs)
    },
    listen(listener) {
      listeners.add(listener)
      if (!polling) {
        polling = new AbortController()
        void poll(polling.signal)
      }
      return () => {
        listeners.delete(listener)
        if (listeners.size > 0) return
        polling?.abort()
        polling = undefined
      }
    },
  }
}

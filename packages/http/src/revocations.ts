/** Notices tokens that stop being good, also if another process revoked them, so that open streams can end. */
import { BoundedMap } from '@sluice/kit'
import type { Clock, DeviceRow, DeviceStore, Logger } from '@sluice/sdk'

export interface Revocations {
  /** Watches a token that was good just now, by its hash. */
  watch(tokenHash: string, device: DeviceRow): void
  /** Checks all watched tokens now, if there is a listener. */
  check(): Promise<void>
  /** See `Auth.onRevoked`. */
  listen(listener: (tokenHash: string) => void): () => void
}

const PERIOD_MS = 500
const TOKENS_MAX = 5000

export function createRevocations(devices: DeviceStore, clock: Clock, log: Logger): Revocations {
  /** The expiry of each watched token. */
  const watched = new BoundedMap<string, number | null>(TOKENS_MAX)
  const listeners = new Set<(tokenHash: string) => void>()
  let version: number | undefined
  let polling: AbortController | undefined

  const revoke = (tokenHash: string): void => {
    watched.delete(tokenHash)
    for (const listener of listeners) listener(tokenHash)
  }

  const checkAll = async (): Promise<void> => {
    const nowMs = clock.nowMs()
    const currentVersion = await devices.version()
    const hasChanged = currentVersion !== version
    for (const [tokenHash, expiresAtMs] of [...watched.entries()]) {
      const isGone = hasChanged && !(await devices.findByTokenHash(tokenHash))
      if (isGone || (expiresAtMs !== null && expiresAtMs <= nowMs)) revoke(tokenHash)
    }
    version = currentVersion
  }

  const check = async (): Promise<void> => {
    if (listeners.size > 0) await checkAll().catch((error) => log.error('check for revoked devices failed', { error }))
  }

  const poll = async (signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      await check()
      await clock.sleep(PERIOD_MS, signal)
    }
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

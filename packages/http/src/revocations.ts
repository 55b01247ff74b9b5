/** Notices tokens that stop being good, also when another process did it, so that open streams can end. */
import { BoundedMap } from '@sluice/kit'
import type { Clock, DeviceRow, DeviceStore, Logger } from '@sluice/sdk'

export interface Revocations {
  /** Remembers a token that was good just now, by its hash. */
  watch(tokenHash: string, device: DeviceRow): void
  /** Looks now, where anything is listening. */
  check(): Promise<void>
  /** See `Auth.onRevoked`. */
  listen(listener: (tokenHash: string) => void): () => void
}

const PERIOD_MS = 500
const TOKENS_MAX = 5000

export interface RevocationsOptions {
  readonly devices: Pick<DeviceStore, 'version' | 'findByTokenHash'>
  readonly clock: Clock
  readonly log: Logger
}

export function createRevocations({ devices, clock, log }: RevocationsOptions): Revocations {
  /** When each expires. */
  const watched = new BoundedMap<string, number | null>(TOKENS_MAX)
  const listeners = new Set<(tokenHash: string) => void>()
  let version: number | undefined
  let stop: AbortController | undefined

  const revoke = (tokenHash: string): void => {
    watched.delete(tokenHash)
    for (const listener of listeners) listener(tokenHash)
  }

  const look = async (): Promise<void> => {
    const nowMs = clock.nowMs()
    const seen = await devices.version()
    const changed = seen !== version
    for (const [tokenHash, expiresAtMs] of [...watched.entries()]) {
      const isGone = changed && !(await devices.findByTokenHash(tokenHash))
      if (isGone || (expiresAtMs !== null && expiresAtMs <= nowMs)) revoke(tokenHash)
    }
    version = seen
  }

  const run = async (signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      await check()
      await clock.sleep(PERIOD_MS, signal)
    }
  }

  const check = async (): Promise<void> => {
    if (listeners.size > 0) await look().catch((error) => log.error('looking for revoked devices failed', { error }))
  }

  return {
    check,
    watch(tokenHash, { expiresAtMs }) {
      if (!watched.has(tokenHash)) watched.set(tokenHash, expiresAtMs)
    },
    listen(listener) {
      listeners.add(listener)
      if (!stop) {
        stop = new AbortController()
        void run(stop.signal)
      }
      return () => {
        listeners.delete(listener)
        if (listeners.size > 0) return
        stop?.abort()
        stop = undefined
      }
    },
  }
}

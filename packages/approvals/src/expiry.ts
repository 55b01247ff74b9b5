/** One timer for all approvals: it rings when the first of them is over. */
import type { Clock } from '@sluice/sdk'

/** The clock on the wall may be set: it is looked at this often. */
const LONGEST_MS = 60_000

export interface Expiry {
  /** Something is over at this moment, perhaps earlier than anything known so far. */
  by(atMs: number): void
  stop(): void
}

/** `expire` ends what is over and tells when the next one is; undefined: none is. Must not reject. */
export function createExpiry(clock: Clock, expire: () => Promise<number | undefined>): Expiry {
  let armedMs = Number.POSITIVE_INFINITY
  let waiting = new AbortController()

  const wait = async (signal: AbortSignal): Promise<void> => {
    while (armedMs < Number.POSITIVE_INFINITY) {
      await clock.sleep(Math.min(Math.max(0, armedMs - clock.nowMs()), LONGEST_MS), signal)
      if (signal.aborted) return
      if (clock.nowMs() < armedMs) continue
      armedMs = Number.POSITIVE_INFINITY
      const next = await expire()
      // Somebody earlier may have come meanwhile, and waits by itself.
      if (signal.aborted) return
      armedMs = next ?? armedMs
    }
  }

  return {
    by(atMs) {
      if (atMs >= armedMs) return
      waiting.abort()
      waiting = new AbortController()
      armedMs = atMs
      void wait(waiting.signal)
    },
    stop() {
      waiting.abort()
      armedMs = Number.NEGATIVE_INFINITY
    },
  }
}

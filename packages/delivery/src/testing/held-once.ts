/** Test support: leases that a test grants and takes away. */
import type { Ownership } from '@sluice/ownership'
import type { Lease, LeaseName, OwnedStore } from '@sluice/sdk'

export interface HeldOnce {
  readonly ownership: Pick<Ownership, 'whileHolding'>
  /** The names of the leases that were asked for, in order. */
  readonly asked: readonly LeaseName[]
  /** Takes every lease away. */
  lose(): void
}

/** Grants each lease at once, or once `granted` resolves, and never again after its loss. */
export function heldOnce(granted: Promise<void> = Promise.resolve()): HeldOnce {
  const asked: LeaseName[] = []
  const lost = new AbortController()
  const lease = (name: LeaseName): Lease => ({
    name,
    epoch: 1,
    shards: null,
    lost: lost.signal,
    mayAct: () => !lost.signal.aborted,
    release: async () => undefined,
  })
  return {
    asked,
    lose: () => lost.abort(),
    ownership: {
      async whileHolding(name, work, signal) {
        asked.push(name)
        await granted
        await work({ lease: lease(name) } as OwnedStore, AbortSignal.any([signal, lost.signal]))
      },
    },
  }
}

/** What a store is opened with where nobody reads its log. */
import type { StoreOptions } from '@sluice/store'

export const quietHost: Pick<StoreOptions, 'clock' | 'log'> = {
  clock: { nowMs: () => Date.now(), monotonicMs: () => performance.now(), sleep: async () => {} },
  log: { debug() {}, info() {}, warn() {}, error() {} },
}

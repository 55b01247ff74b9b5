/** The bench of the store rules, and the type of a group of rules. */
import { ALL_SHARDS, type LeaseName, type OwnedStore, type Store, shardsLease } from '@sluice/sdk'
import type { TestClock } from '../clock.ts'

/** The bench of a rule: an empty store, its clock, and further handles on the same data. */
export interface StoreBench {
  readonly store: Store
  readonly clock: TestClock
  /** Opens the data as another process does; the first store stays open. */
  otherProcess(): Promise<Store>
  /** Closes the store and opens its data again. */
  restart(): Promise<Store>
}

/** Checks by the rule they test; a check throws if the rule is broken. */
export type StoreRules = Readonly<Record<string, (bench: StoreBench) => Promise<void>>>

/** Acquires all shards and returns the store as their holder uses it. */
export const own = async (store: Store, name: LeaseName = shardsLease(ALL_SHARDS)): Promise<OwnedStore> =>
  store.under(await store.leases.acquire(name))

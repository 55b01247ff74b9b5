/** The adapters that are connected now. */
import type { Adapter } from './adapter.ts'
import type { FoundAdapter } from './find-adapters.ts'

export interface PresentAdapter {
  readonly alias: string
  readonly adapter: Adapter
  readonly found: FoundAdapter
  /** Says which settings the adapter does not support, one sentence without a full stop for each. */
  readonly notes: readonly string[]
}

export interface PresentAdapters {
  /** Returns the adapters that the last search found. */
  present(): readonly PresentAdapter[]
  /**
   * Returns the adapter with this alias, or the only adapter when no alias is given. Waits for the first search. Throws `unavailable`
   * when no adapter is connected, `not_found` for an unknown alias and `invalid_request` when several are connected and no alias is
   * given.
   */
  pick(alias?: string): Promise<PresentAdapter>
}

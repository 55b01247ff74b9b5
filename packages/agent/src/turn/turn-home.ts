/** Where a turn runs: under the lease of its shard, or in another process. */
import type { Ownership } from '@sluice/ownership'
import {
  type ClusterStore,
  type Lease,
  type OwnedAdmissionStore,
  type OwnedTurnStore,
  runsOnShard,
  type Store,
  shardOfTurn,
} from '@sluice/sdk'

export type TurnStorage = Pick<Store, 'sessions' | 'turns' | 'idempotency'>

/** The store that a turn writes to, and the lease under which it does. A process that owns no shards has no lease. */
export interface TurnHome extends TurnStorage {
  readonly lease?: Lease
}

/** A home whose unfinished turns this process resumes. */
export interface ResumableHome extends TurnHome {
  readonly turns: OwnedTurnStore
  readonly admissions: Pick<OwnedAdmissionStore, 'recover'>
}

export type TurnOwnership = Pick<Ownership, 'isStarted' | 'ownsAll' | 'of'>

/**
 * Returns the home of a turn; undefined when another process runs the turns of its session. A turn without a session that is not
 * stored runs here, because no other process knows of it.
 */
export function homeOf(
  { store, ownership }: { readonly store: TurnStorage; readonly ownership?: TurnOwnership },
  { id, session, isStored }: { readonly id: string; readonly session: string | null; readonly isStored: boolean },
): TurnHome | undefined {
  if (!ownership?.isStarted || (session === null && !isStored)) return store
  return ownership.of(ownership.ownsAll ? 0 : shardOfTurn(session, id))
}

/** The store of a cluster as its turns use it. */
export type ClusterTurnStorage = Pick<ClusterStore, 'turns' | 'notices' | 'roles'>

/** Whether a turn runs on the node that was asked for it, and not on the owner of its shard. */
export const isDirectTurn = (session: string | null): boolean => session === null || !runsOnShard(session)

/** The approvals that this process expires and dispatches, with the store under their lease. */
import type { Ownership } from '@sluice/ownership'
import { type Approval, type ApprovalKey, type ApprovalRequest, type OwnedStore, type StoreChange, shardOf, shardOfTurn } from '@sluice/sdk'
import { keyText } from './new-approval.ts'
import { unfinishedApprovals } from './open-approvals.ts'

export type ApprovalOwnership = Pick<Ownership, 'ownsAll' | 'of' | 'held' | 'onShards'>

/** Takes an unfinished approval whose shard this process holds. */
type Found = (approval: Approval, owned: OwnedStore) => void

export class OwnApprovals {
  readonly #ownership: ApprovalOwnership
  readonly #found: Found
  readonly #owned = new Map<string, OwnedStore>()

  constructor(ownership: ApprovalOwnership, found: Found) {
    this.#ownership = ownership
    this.#found = found
  }

  has(key: ApprovalKey): boolean {
    return this.#owned.has(keyText(key))
  }

  get(key: ApprovalKey): OwnedStore | undefined {
    return this.#owned.get(keyText(key))
  }

  set(key: ApprovalKey, owned: OwnedStore): void {
    this.#owned.set(keyText(key), owned)
  }

  delete(key: ApprovalKey): void {
    this.#owned.delete(keyText(key))
  }

  /** Returns the store of the process that runs the gate; undefined when that is not this one. */
  ownerOf({ gate, runId, session }: Pick<ApprovalRequest, 'gate' | 'runId' | 'session'>): OwnedStore | undefined {
    return this.#ownership.of(gate === 'tool' ? shardOfTurn(session ?? null, runId) : shardOf(runId))
  }

  /** Resumes the approvals of each shard lease, and follows them until it is lost. `resumed` is called with their number. Resolves to an unsubscribe function. */
  follow(resumed: (approvals: number) => void): Promise<() => void> {
    const take = async (owned: OwnedStore): Promise<void> => {
      owned.lease.lost.addEventListener('abort', () => this.#drop(owned), { once: true })
      const found = await this.#read(owned, {})
      if (found > 0) resumed(found)
    }
    return this.#ownership.onShards(take, async (owned) => this.#drop(owned))
  }

  /** Reads what a change of another process may concern: in a process that owns all shards, only decisions. */
  async look(change: StoreChange): Promise<void> {
    const filter = this.#ownership.ownsAll ? ({ decided: true } as const) : {}
    // All at once, so that the store can read the approvals of all shards together.
    await Promise.all(this.#ownership.held(change).map((owned) => this.#read(owned, filter)))
  }

  async #read(owned: OwnedStore, filter: Parameters<typeof unfinishedApprovals>[1]): Promise<number> {
    let found = 0
    for await (const approval of unfinishedApprovals(owned.approvals, filter)) {
      found++
      // The lease may be lost, or about to be given up.
      if (this.#ownership.of(owned.lease.shards?.from ?? -1) === owned) this.#found(approval, owned)
    }
    return found
  }

  #drop(owned: OwnedStore): void {
    for (const [key, holder] of this.#owned) if (holder === owned) this.#owned.delete(key)
  }
}

/** A lease that this process holds, until another process takes it over or it is released. */
import { type Lease, type LeaseName, leaseLost, type ShardRange } from '@sluice/sdk'
import type { Fence } from '../connection/group-commit.ts'

export interface LeaseOwner {
  readonly isAlive: boolean
  forget(epoch: number): void
  end(lease: HeldLease): Promise<void>
}

export class HeldLease implements Lease, Fence {
  readonly name: LeaseName
  readonly epoch: number
  readonly shards: ShardRange | null
  readonly owner: LeaseOwner
  /** Deletes the row, where `Leases` does not. */
  readonly endOwn: (() => Promise<void>) | undefined
  readonly #lost = new AbortController()

  constructor(owner: LeaseOwner, { name, epoch, shards }: Pick<Lease, 'name' | 'epoch' | 'shards'>, endOwn?: () => Promise<void>) {
    this.owner = owner
    this.endOwn = endOwn
    this.name = name
    this.epoch = epoch
    this.shards = shards
  }

  get lost(): AbortSignal {
    return this.#lost.signal
  }

  get isLost(): boolean {
    return this.lost.aborted
  }

  mayAct(): boolean {
    return !this.isLost && this.owner.isAlive
  }

  lose(): void {
    this.owner.forget(this.epoch)
    this.#lost.abort(leaseLost(this.name))
  }

  async release(): Promise<void> {
    if (this.isLost) return
    const ended = this.owner.end(this)
    this.lose()
    await ended
  }
}

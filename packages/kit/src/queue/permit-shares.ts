/**
 * The shares of a bounded number of permits: the jobs of one owner use at most its share of them, and its further jobs wait outside of the
 * queue of all jobs. Every operation takes constant time.
 */
import { LinkedQueue, type Place } from './linked-queue.ts'
import type { OwnedPermit, PermitState } from './semaphore.ts'

/** A job as it asks for a part of its owner's share. */
export interface Sharing {
  readonly owner: string
  /** How many permits the owner may use at once; read each time. */
  share(): number
}

/** Called once the job is counted. Returns false when the job cannot use its part now, which ends its wait and its count. */
type Admitted = () => boolean

interface Waiter {
  readonly sharing: Sharing
  readonly admitted: Admitted
}

export type WaiterPlace = Place<Waiter>

interface Owner {
  /** The jobs that hold a permit, or wait for one among the jobs of all owners. */
  used: number
  /** Jobs that had a permit before; they go first. */
  readonly again: LinkedQueue<Waiter>
  readonly fresh: LinkedQueue<Waiter>
}

export class PermitShares {
  /** The owners with jobs. */
  readonly #owners = new Map<string, Owner>()
  #isOpen = false
  #waitingAgain = 0

  /** The number of jobs that had a permit before and wait for the share of their owner. */
  get waitingAgain(): number {
    return this.#waitingAgain
  }

  /** Lists how many permits each owner uses. */
  *used(): Generator<readonly [owner: string, permits: number]> {
    for (const [name, { used }] of this.#owners) yield [name, used]
  }

  hasRoom(sharing: Sharing): boolean {
    return this.#hasRoom(this.#owners.get(sharing.owner), sharing)
  }

  /** Counts a job now and returns undefined, or calls `admitted` when it is counted. */
  enter(sharing: Sharing, admitted: Admitted, { isFresh }: { readonly isFresh: boolean }): WaiterPlace | undefined {
    const owner = this.#owners.get(sharing.owner) ?? { used: 0, again: new LinkedQueue<Waiter>(), fresh: new LinkedQueue<Waiter>() }
    if (owner.used === 0) this.#owners.set(sharing.owner, owner)
    if (this.#hasRoom(owner, sharing)) {
      owner.used++
      return undefined
    }
    if (!isFresh) this.#waitingAgain++
    return (isFresh ? owner.fresh : owner.again).push({ sharing, admitted })
  }

  /** Ends the wait of a job that is not counted yet. */
  leave(place: WaiterPlace, { isFresh }: { readonly isFresh: boolean }): void {
    const { owner: name } = place.value.sharing
    const owner = this.#owners.get(name)
    if (!owner) return
    if (!isFresh) this.#waitingAgain--
    ;(isFresh ? owner.fresh : owner.again).remove(place)
    this.#forget(name, owner)
  }

  /** Ends the use of a job that is counted. */
  free({ owner: name }: Sharing): void {
    const owner = this.#owners.get(name)
    if (!owner) return
    owner.used--
    this.#admit(name, owner)
  }

  /** Counts the jobs that have room by now; call it when shares have grown. */
  wake(): void {
    for (const [name, owner] of [...this.#owners]) this.#admit(name, owner)
  }

  /** From now on every job has room. */
  open(): void {
    this.#isOpen = true
    this.wake()
  }

  #hasRoom(owner: Owner | undefined, sharing: Sharing): boolean {
    return this.#isOpen || (owner?.used ?? 0) < sharing.share()
  }

  #admit(name: string, owner: Owner): void {
    for (;;) {
      const waiter = owner.again.first ?? owner.fresh.first
      if (!waiter || !this.#hasRoom(owner, waiter.sharing)) break
      if (owner.again.shift()) this.#waitingAgain--
      else owner.fresh.shift()
      owner.used++
      if (!waiter.admitted()) owner.used--
    }
    this.#forget(name, owner)
  }

  #forget(name: string, owner: Owner): void {
    if (owner.used === 0 && owner.again.isEmpty && owner.fresh.isEmpty) this.#owners.delete(name)
  }
}

/** A permit that counts for the share of its owner while it is held or requested among the jobs of all owners. */
export class SharedPermit implements OwnedPermit {
  readonly #permit: OwnedPermit
  readonly #shares: PermitShares
  readonly #sharing: Sharing
  #isCounted = true
  #place: WaiterPlace | undefined
  #admitted: PromiseWithResolvers<void> | undefined

  /** The job is counted. */
  constructor(permit: OwnedPermit, shares: PermitShares, sharing: Sharing) {
    this.#permit = permit
    this.#shares = shares
    this.#sharing = sharing
  }

  get state(): PermitState {
    return this.#place ? 'reacquiring' : this.#permit.state
  }

  release(): void {
    this.#stopWaiting()
    this.#permit.release()
    if (this.#permit.state === 'released') this.#free()
  }

  async reacquire(): Promise<void> {
    if (this.#permit.state === 'released' && !this.#isCounted && !this.#place) {
      const admitted = (): boolean => {
        this.#isCounted = true
        this.#place = undefined
        this.#admitted?.resolve()
        return true
      }
      this.#place = this.#shares.enter(this.#sharing, admitted, { isFresh: false })
      if (this.#place) this.#admitted = Promise.withResolvers()
      else this.#isCounted = true
    }
    if (this.#place) await this.#admitted?.promise
    // A job that was released or has ended meanwhile requests no permit.
    if (this.#isCounted) await this.#permit.reacquire()
  }

  end(): void {
    this.#stopWaiting()
    this.#permit.end()
    this.#free()
  }

  #stopWaiting(): void {
    if (!this.#place) return
    this.#shares.leave(this.#place, { isFresh: false })
    this.#place = undefined
    this.#admitted?.resolve()
  }

  #free(): void {
    if (!this.#isCounted) return
    this.#isCounted = false
    this.#shares.free(this.#sharing)
  }
}

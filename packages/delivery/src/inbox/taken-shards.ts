/**
 * The shards whose waiting rows this process has resumed. A message that arrives while the rows of its shard are still being read
 * from the store enters its lane after them.
 */
import { Homes } from '@sluice/ownership'
import type { Clock, Inbound, OwnedStore, WaitingMessage } from '@sluice/sdk'

/** A row that has just been stored, and its message. */
export interface ArrivedRow {
  readonly row: WaitingMessage
  readonly message: Inbound
}

export class TakenShards extends Homes<OwnedStore> {
  /** The messages that arrived while older rows of their shards are read. */
  readonly #heldBack = new Map<OwnedStore, ArrivedRow[]>()
  readonly #takenAtMs = new WeakMap<OwnedStore, number>()
  readonly #clock: Pick<Clock, 'nowMs'>

  constructor(clock: Pick<Clock, 'nowMs'>) {
    super()
    this.#clock = clock
  }

  /** Returns when this process resumed the shards, by the clock; 0 if it never did. */
  takenAtMs(owned: OwnedStore): number {
    return this.#takenAtMs.get(owned) ?? 0
  }

  /** Holds back arriving messages of these shards until `opened`. `onLost` is called once the lease is lost. */
  override add(owned: OwnedStore, onLost?: () => void): void {
    this.#heldBack.set(owned, [])
    this.#takenAtMs.set(owned, this.#clock.nowMs())
    super.add(owned, onLost)
  }

  /** Returns the messages that arrived meanwhile; from now on they enter at once. */
  opened(owned: OwnedStore): readonly ArrivedRow[] {
    const arrived = this.#heldBack.get(owned) ?? []
    this.#heldBack.delete(owned)
    return arrived
  }

  /** Holds back a message while the rows of its shard are being read. Returns false when it may enter its lane now. */
  holdsBack(owned: OwnedStore, row: ArrivedRow): boolean {
    const arrived = this.#heldBack.get(owned)
    arrived?.push(row)
    return arrived !== undefined
  }
}

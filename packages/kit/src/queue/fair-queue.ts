/**
 * A queue that groups share: first-in first-out inside a group, and the groups take turns, so that a long backlog of one group
 * delays the others by one member at a time. Every operation takes constant time.
 */
import { LinkedQueue, type Place } from './linked-queue.ts'

interface Group<T> {
  readonly name: string
  readonly members: LinkedQueue<T>
  /** The group's place in the queue of groups. */
  turn: Place<Group<T>> | undefined
}

export interface FairPlace<T> {
  readonly group: Group<T>
  readonly place: Place<T>
}

export class FairQueue<T> {
  /** The groups that have members. */
  readonly #groups = new Map<string, Group<T>>()
  /** The same groups in the order in which they are served. */
  readonly #turns = new LinkedQueue<Group<T>>()

  get isEmpty(): boolean {
    return this.#turns.isEmpty
  }

  push(groupName: string, value: T): FairPlace<T> {
    const group = this.#groups.get(groupName) ?? { name: groupName, members: new LinkedQueue<T>(), turn: undefined }
    if (!group.turn) {
      group.turn = this.#turns.push(group)
      this.#groups.set(groupName, group)
    }
    return { group, place: group.members.push(value) }
  }

  /** Takes the first member of the group whose turn it is; the group then waits behind all others. */
  shift(): T | undefined {
    const group = this.#turns.shift()
    if (!group) return undefined
    const value = group.members.shift()
    if (group.members.isEmpty) this.#groups.delete(group.name)
    else group.turn = this.#turns.push(group)
    return value
  }

  /** The place must be in this queue. */
  remove({ group, place }: FairPlace<T>): void {
    group.members.remove(place)
    if (!group.members.isEmpty) return
    if (group.turn) this.#turns.remove(group.turn)
    this.#groups.delete(group.name)
  }

  /** The member of the group that has waited longest. */
  firstOf(groupName: string): T | undefined {
    return this.#groups.get(groupName)?.members.first
  }
}

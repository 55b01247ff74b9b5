/** A first-in first-out queue whose members can leave from anywhere. Every operation takes constant time. */

export interface Place<T> {
  readonly value: T
  before: Place<T> | undefined
  after: Place<T> | undefined
}

export class LinkedQueue<T> {
  #first: Place<T> | undefined
  #last: Place<T> | undefined

  get isEmpty(): boolean {
    return this.#first === undefined
  }

  /** The member that `shift` would return. */
  get first(): T | undefined {
    return this.#first?.value
  }

  get firstPlace(): Place<T> | undefined {
    return this.#first
  }

  push(value: T): Place<T> {
    return this.insert(value, undefined)
  }

  /** Adds a member before another one of this queue; at the end without one. */
  insert(value: T, after: Place<T> | undefined): Place<T> {
    const place: Place<T> = { value, before: after ? after.before : this.#last, after }
    if (place.before) place.before.after = place
    else this.#first = place
    if (after) after.before = place
    else this.#last = place
    return place
  }

  shift(): T | undefined {
    const first = this.#first
    if (first) this.remove(first)
    return first?.value
  }

  /** `place` must be in this queue. */
  remove(place: Place<T>): void {
    if (place.before) place.before.after = place.after
    else this.#first = place.after
    if (place.after) place.after.before = place.before
    else this.#last = place.before
  }
}

/** A priority queue of values by their due time: a binary heap with the earliest first. */

interface Item<Value> {
  readonly atMs: number
  readonly value: Value
}

/** Values with the same due time have no defined order. */
export class InstantQueue<Value> {
  readonly #items: Item<Value>[] = []

  /** The earliest due time; Infinity when the queue is empty. */
  get firstMs(): number {
    return this.#items[0]?.atMs ?? Number.POSITIVE_INFINITY
  }

  push(atMs: number, value: Value): void {
    const items = this.#items
    const item = { atMs, value }
    let at = items.length
    for (let parent = (at - 1) >> 1; at > 0; parent = (at - 1) >> 1) {
      const above = items[parent]
      if (!above || above.atMs <= atMs) break
      items[at] = above
      at = parent
    }
    items[at] = item
  }

  /** Removes and returns the values due at or before `ms`, in order. */
  takeUntil(ms: number): Value[] {
    const taken: Value[] = []
    for (let first = this.#items[0]; first && first.atMs <= ms; first = this.#items[0]) {
      taken.push(first.value)
      this.#dropFirst()
    }
    return taken
  }

  /** Returns all values in no particular order. */
  values(): Value[] {
    return this.#items.map(({ value }) => value)
  }

  #dropFirst(): void {
    const items = this.#items
    const last = items.pop()
    if (!last || items.length === 0) return
    let at = 0
    for (let child = 1; child < items.length; child = 2 * at + 1) {
      const [left, right] = [items[child], items[child + 1]]
      const smaller = left && right && right.atMs < left.atMs ? child + 1 : child
      const below = items[smaller]
      if (!below || below.atMs >= last.atMs) break
      items[at] = below
      at = smaller
    }
    items[at] = last
  }
}

/**
 * A map of at most `max` keys that drops the oldest first, in amortised constant time. A separate queue has the insertion
 * order, because deleting the first key of a large `Map` visits every key deleted before it and is twenty times slower.
 */
export class BoundedMap<K, V> {
  readonly #max: number
  readonly #map = new Map<K, { value: V; turn: number }>()
  /** Keys in insertion order. An entry is stale if the map has another `turn` for its key. */
  #queue: { key: K; turn: number }[] = []
  #head = 0
  #turn = 0

  constructor(max: number) {
    if (!Number.isInteger(max) || max < 1) throw new RangeError(`a bounded map needs room for at least one key, not ${max}`)
    this.#max = max
  }

  get size(): number {
    return this.#map.size
  }

  get(key: K): V | undefined {
    return this.#map.get(key)?.value
  }

  has(key: K): boolean {
    return this.#map.has(key)
  }

  /** Adds or replaces a value. A replaced key keeps its age. Returns the key that was dropped to make room, if any. */
  set(key: K, value: V): K | undefined {
    const known = this.#map.get(key)
    if (known) {
      known.value = value
      return undefined
    }
    const evicted = this.#map.size >= this.#max ? this.#dropOldest() : undefined
    const turn = this.#turn++
    this.#map.set(key, { value, turn })
    this.#queue.push({ key, turn })
    if (this.#queue.length > 2 * this.#max + 16) this.#compact()
    return evicted
  }

  delete(key: K): boolean {
    return this.#map.delete(key)
  }

  clear(): void {
    this.#map.clear()
    this.#queue = []
    this.#head = 0
  }

  /** Returns the key that is dropped next. */
  oldest(): K | undefined {
    this.#skipStale()
    return this.#queue[this.#head]?.key
  }

  *entries(): Generator<[K, V]> {
    for (const [key, { value }] of this.#map) yield [key, value]
  }

  #skipStale(): void {
    for (; this.#head < this.#queue.length; this.#head++) {
      const next = this.#queue[this.#head]
      if (next && this.#map.get(next.key)?.turn === next.turn) return
    }
  }

  #dropOldest(): K | undefined {
    const key = this.oldest()
    if (key !== undefined) this.#map.delete(key)
    return key
  }

  #compact(): void {
    this.#queue = this.#queue.slice(this.#head).filter(({ key, turn }) => this.#map.get(key)?.turn === turn)
    this.#head = 0
  }
}

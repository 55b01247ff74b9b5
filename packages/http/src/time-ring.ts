/** Moments in the order they came, oldest first: a queue of numbers that grows up to a bound. */
export class TimeRing {
  readonly #max: number
  #times: Float64Array
  #head = 0
  #count = 0

  constructor(max: number) {
    this.#max = max
    this.#times = new Float64Array(Math.min(max, 4))
  }

  get count(): number {
    return this.#count
  }

  get isFull(): boolean {
    return this.#count >= this.#max
  }

  /** Of an empty ring: 0. */
  get oldest(): number {
    return this.#count === 0 ? 0 : (this.#times[this.#head] ?? 0)
  }

  /** Forgets every moment at or before this one. */
  dropUntil(moment: number): void {
    while (this.#count > 0 && this.oldest <= moment) {
      this.#head = (this.#head + 1) % this.#times.length
      this.#count -= 1
    }
  }

  /** Adds a moment to a ring that is not full. */
  push(moment: number): void {
    if (this.#count === this.#times.length) this.#grow()
    this.#times[(this.#head + this.#count) % this.#times.length] = moment
    this.#count += 1
  }

  #grow(): void {
    const grown = new Float64Array(Math.min(this.#max, this.#times.length * 2))
    grown.set(this.#times.subarray(this.#head))
    grown.set(this.#times.subarray(0, this.#head), this.#times.length - this.#head)
    this.#times = grown
    this.#head = 0
  }
}

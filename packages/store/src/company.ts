/**
 * How many writers a commit is worth waiting for. Callers that wait for their commit come back together once it is done; two
 * groups of them that take turns would pay for two syncs where one does. How many there are is learned: now and then a
 * commit waits to see who else comes, and from then on that many are waited for, as long as they come.
 */

const LOOK_EVERY_MIN = 16
/** Where nobody else ever comes, looking becomes rare. */
const LOOK_EVERY_MAX = 4096

export class Company {
  /** As many as came together last. */
  #expected = 1
  #lookEvery = LOOK_EVERY_MIN
  #untilLook = LOOK_EVERY_MIN

  /** True if nobody is missed among `units` that wait. */
  isComplete(units: number): boolean {
    return units >= this.#expected && this.#untilLook > 0
  }

  /** Told of each commit. */
  committed(units: number): void {
    const looked = this.#untilLook <= 0
    if (looked) this.#lookEvery = units > this.#expected ? LOOK_EVERY_MIN : Math.min(2 * this.#lookEvery, LOOK_EVERY_MAX)
    this.#untilLook = looked ? this.#lookEvery : this.#untilLook - 1
    this.#expected = units
  }
}

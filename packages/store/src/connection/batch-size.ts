/**
 * Predicts the number of writers worth waiting for before a commit. Callers that wait for their commit come back together once
 * it is done; two alternating groups of them would pay for two syncs instead of one. Now and then a commit waits to see how many
 * writers arrive, and later commits wait for that number as long as it is reached.
 */

const PROBE_EVERY_MIN = 16
/** Probing becomes this rare while no further writers arrive. */
const PROBE_EVERY_MAX = 4096

/** Create one instance for each writer. */
export class BatchSize {
  /** The number of writes in the last commit. */
  #expected = 1
  #probeEvery = PROBE_EVERY_MIN
  #untilProbe = PROBE_EVERY_MIN

  /** Returns whether a commit of `units` writes need not wait for more. */
  isComplete(units: number): boolean {
    return units >= this.#expected && this.#untilProbe > 0
  }

  /** Call it after each commit with the number of its writes. */
  committed(units: number): void {
    const hasProbed = this.#untilProbe <= 0
    if (hasProbed) this.#probeEvery = units > this.#expected ? PROBE_EVERY_MIN : Math.min(2 * this.#probeEvery, PROBE_EVERY_MAX)
    this.#untilProbe = hasProbed ? this.#probeEvery : this.#untilProbe - 1
    this.#expected = units
  }
}

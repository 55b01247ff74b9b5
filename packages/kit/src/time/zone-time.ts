/** The wall clock of a time zone. A wall clock time is given as milliseconds of the same time of day in UTC, in whole seconds. */

/** Longer than any clock change so far, with a day to spare: the offsets at both ends are those before and after one change. */
const AROUND_MS = 30 * 3_600_000
const SECOND_MS = 1000

/** Converts between instants and the wall clock of one time zone. */
export class ZoneTime {
  readonly #format: Intl.DateTimeFormat

  /** `timezone` is an IANA name. */
  constructor(timezone: string) {
    this.#format = new Intl.DateTimeFormat('en-US', {
      timeZone: timezone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
  }

  /** Returns the time that the clocks show at an instant. */
  wallOf(instantMs: number): number {
    const parts = new Map(this.#format.formatToParts(instantMs).map(({ type, value }) => [type, Number(value)]))
    const part = (type: Intl.DateTimeFormatPartTypes): number => parts.get(type) ?? 0
    return Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'), part('second'))
  }

  /**
   * Returns the instant at which the clocks first show a time. For a skipped time it is the instant of the change. The result
   * never decreases as `wallMs` grows.
   */
  instantOf(wallMs: number): number {
    const [before, after] = [wallMs - AROUND_MS, wallMs + AROUND_MS].map((aboutMs) => wallMs - this.#offsetAt(aboutMs))
    const shown = [before ?? wallMs, after ?? wallMs].filter((instantMs) => this.wallOf(instantMs) === wallMs)
    if (shown.length > 0) return Math.min(...shown)
    return this.#firstSecond(wallMs - AROUND_MS, wallMs + AROUND_MS, (instantMs) => this.wallOf(instantMs) > wallMs)
  }

  /** Returns the latest time that the clocks have shown up to an instant. After a change back it is later than the present one. */
  lastWallBy(instantMs: number): number {
    const wallMs = this.wallOf(instantMs)
    return this.#firstSecond(wallMs, wallMs + AROUND_MS, (laterMs) => this.instantOf(laterMs) > instantMs) - SECOND_MS
  }

  #offsetAt(instantMs: number): number {
    return this.wallOf(instantMs) - Math.floor(instantMs / SECOND_MS) * SECOND_MS
  }

  /** Returns the first second in a range for which `holds` is true. `holds` must stay true from there on. */
  #firstSecond(fromMs: number, toMs: number, holds: (ms: number) => boolean): number {
    let [low, high] = [Math.floor(fromMs / SECOND_MS), Math.ceil(toMs / SECOND_MS)]
    while (low < high) {
      const middle = Math.floor((low + high) / 2)
      if (holds(middle * SECOND_MS)) high = middle
      else low = middle + 1
    }
    return low * SECOND_MS
  }
}

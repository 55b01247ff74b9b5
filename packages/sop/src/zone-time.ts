/** The wall clock of a time zone. Wall clock times are milliseconds as if they were in UTC, in whole seconds. */

/** Longer than clocks were ever moved by, with a day to spare: the offsets at both ends are those before and after one change. */
const AROUND_MS = 30 * 3_600_000
const SECOND_MS = 1000

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

  /** What the clocks show at an instant. */
  wallOf(instantMs: number): number {
    const parts = new Map(this.#format.formatToParts(instantMs).map(({ type, value }) => [type, Number(value)]))
    const part = (type: Intl.DateTimeFormatPartTypes): number => parts.get(type) ?? 0
    return Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'), part('second'))
  }

  /**
   * When the clocks first show a time. A time that they skip counts as shown at the moment they have moved on. Never decreases as
   * the time grows.
   */
  instantOf(wallMs: number): number {
    const [before, after] = [wallMs - AROUND_MS, wallMs + AROUND_MS].map((aboutMs) => wallMs - this.#offsetAt(aboutMs))
    const shown = [before ?? wallMs, after ?? wallMs].filter((instantMs) => this.wallOf(instantMs) === wallMs)
    if (shown.length > 0) return Math.min(...shown)
    return this.#firstSecond(wallMs - AROUND_MS, wallMs + AROUND_MS, (instantMs) => this.wallOf(instantMs) > wallMs)
  }

  /** The last time that the clocks have shown by an instant, which may be later than the one they show at it. */
  lastWallBy(instantMs: number): number {
    const wallMs = this.wallOf(instantMs)
    return this.#firstSecond(wallMs, wallMs + AROUND_MS, (laterMs) => this.instantOf(laterMs) > instantMs) - SECOND_MS
  }

  #offsetAt(instantMs: number): number {
    return this.wallOf(instantMs) - Math.floor(instantMs / SECOND_MS) * SECOND_MS
  }

  /** The first second between two for which something holds that holds for every later one. */
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

import { CLOCK_OFFSET_MS_MAX } from '@sluice/sdk'

/** Says that a clock differs from that of the database; undefined when it differs by a second at most, or is not measured yet. `ms` is positive for a clock that is ahead. */
export function wrongClock(whose: string, ms: number | null): string | undefined {
  if (ms === null || Math.abs(ms) <= CLOCK_OFFSET_MS_MAX) return undefined
  return `the clock of ${whose} is ${(Math.abs(ms) / 1000).toFixed(1)} s ${ms < 0 ? 'behind' : 'ahead of'} that of the database`
}

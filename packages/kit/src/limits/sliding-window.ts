/** Counting in a sliding window, for callers that keep the times themselves, such as in the store. */

export interface CountedAt {
  readonly atMs: number
}

/** Returns what counts in the window that ends now. A time further ahead than the window means that the clock was set back. */
export const inWindow = <Counted extends CountedAt>(counted: readonly Counted[], nowMs: number, windowMs: number): readonly Counted[] =>
  counted.filter(({ atMs }) => Math.abs(nowMs - atMs) < windowMs)

/** Returns when a window has room for one more than `counted`, which `inWindow` returned, the oldest first; undefined when it has room now. */
export function roomAtMs(counted: readonly CountedAt[], max: number, windowMs: number): number | undefined {
  const leaves = counted.length < max ? undefined : counted.at(-max)
  return leaves && leaves.atMs + windowMs
}

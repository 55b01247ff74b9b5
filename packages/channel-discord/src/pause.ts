/** The wait before something is tried again: it grows, and no two are alike. */

const FIRST_MS = 500
const LONGEST_MS = 30_000

/** At least half of what it may be. `attempt` counts from 1. */
export const pauseMs = (attempt: number): number => Math.min(LONGEST_MS, FIRST_MS * 2 ** (attempt - 1)) * (0.5 + Math.random() / 2)

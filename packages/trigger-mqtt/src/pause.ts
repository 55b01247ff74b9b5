/** How long to wait before what failed is tried again. */

const FIRST_MS = 1000
export const LONGEST_PAUSE_MS = 60_000

/** A random wait up to 1 s, 2 s, 4 s, … 60 s, as `failures` counts from 1: those cut off together do not come back together. */
export const pauseMs = (failures: number, random: () => number = Math.random): number =>
  Math.ceil(random() * Math.min(LONGEST_PAUSE_MS, FIRST_MS * 2 ** (failures - 1)))

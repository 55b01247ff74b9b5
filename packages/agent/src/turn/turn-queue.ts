/** The queue in which all turns wait. */
import { LaneQueue } from '@sluice/kit'
import type { Clock } from '@sluice/sdk'

/**
 * Makes the queue of turns; `permits` reads `[agent] max_concurrent_turns`. One permit is kept for operators, whom no other client may shut
 * out. If there is only one, a turn of an operator may run at the same time as a turn of another client.
 */
export const createTurnQueue = (clock: Clock, permits: () => number): LaneQueue =>
  new LaneQueue({ clock, permits, othersPermits: () => Math.max(1, permits() - 1) })

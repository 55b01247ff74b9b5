/** How long a stop may take. The files of service managers wait as long. */

/** The longest time that a stop waits for running turns and open responses. */
export const DRAIN_MS = 10_000
/** The longest time of a stop. A step that has not ended by then may never end; the next start recovers its work as after a crash. */
export const STOP_MS_MAX = DRAIN_MS + 7_000

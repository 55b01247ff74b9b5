/** The sections of a configuration that take away every limit of senders. */
export const UNLIMITED = `[limits]
loop_turns = 0
turns_waiting = 0
waiting_mb = 0

[limits.strangers]
turns_per_hour = 0
turns_in_flight = 0
turns_waiting = 0
waiting_mb = 0
pool = { turns_per_hour = 0, turns_in_flight = 0, turns_waiting = 0 }`

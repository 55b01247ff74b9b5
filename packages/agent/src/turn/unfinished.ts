/** More turns than can ever have been accepted: twice the largest `max_queued_turns`, and the largest `max_concurrent_turns`. */
export const UNFINISHED_MAX = 201_024

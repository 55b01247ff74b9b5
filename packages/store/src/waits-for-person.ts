/** The SQL condition that a turn waits for a person: a question about one of its tool calls is open. */

/** `turn` is an SQL expression for the id of the turn. */
export const waitsForPerson = (turn: string): string =>
  `EXISTS (SELECT 1 FROM approvals WHERE run_id = ${turn} AND gate = 'tool' AND state = 'pending')`

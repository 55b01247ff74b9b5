/** Erases the body of a request from the row of its first message; see `EraseDialect`. */

const NEEDING = "SELECT 1 FROM inbox WHERE batch = first.number AND state <> 'done' AND session <> $2"

export const BODY = {
  body: `
    UPDATE inbox AS first SET raw = NULL
    WHERE number = $1 AND raw IS NOT NULL AND (session IN ('', $2) OR state = 'done') AND NOT EXISTS (${NEEDING})`,
}

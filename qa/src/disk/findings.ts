/** The result of one part of the suite. */
export interface Findings {
  /** The number of disk states that were opened and audited. */
  readonly states: number
  /** One problem for each wrong state, with the steps to reproduce it. */
  readonly problems: readonly string[]
}

const SHOWN_MAX = 3

/** Joins the problems found at one place; empty if there are none. */
export function problemAt(place: string, found: readonly string[]): string[] {
  if (found.length === 0) return []
  const more = found.length > SHOWN_MAX ? `; and ${found.length - SHOWN_MAX} more` : ''
  return [`${place}: ${found.slice(0, SHOWN_MAX).join('; ')}${more}`]
}

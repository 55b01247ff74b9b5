/** The result of one part of the suite. */
export interface Findings {
  /** The number of disk states that were opened and audited. */
  readonly states: number
  /** One problem for each wrong state, with the steps to reproduce it. */
  readonly problems: readonly string[]
}

/** Joins the problems found at one place, all of them, since a case may look for any; empty if there are none. */
export const problemAt = (place: string, found: readonly string[]): string[] =>
  found.length === 0 ? [] : [`${place}: ${found.join('; ')}`]

/** The result of one part of the suite. */
export interface Findings {
  /** The number of disk states that were opened and audited. */
  readonly states: number
  /** One problem for each wrong state, with the steps to reproduce it. */
  readonly problems: readonly string[]
}

/** Joins every problem of one place into a line; empty without any. A case with a planted bug searches the line for one of them. */
export const problemAt = (place: string, found: readonly string[]): string[] =>
  found.length === 0 ? [] : [`${place}: ${found.join('; ')}`]

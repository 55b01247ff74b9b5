/** The arguments of the child program. */

/** After this many refusals space is freed or, if it never is, the child gives up. A single fault causes fewer refusals. */
export const REFUSALS_MAX = 12

/** Passed to the child as one JSON argument. */
export interface ChildOptions {
  readonly file: string
  readonly arrivals: number
  /** Statements to run on each new connection. */
  readonly pragmas: string
  /** A planted bug: acknowledges a message before it is stored. */
  readonly acknowledgesEarly: boolean
  readonly faultEnds: 'at once' | 'freed' | 'never'
  /** The path of the file whose creation ends the fault. */
  readonly freed: string
}

/** What the child is told. */

/** After so many refusals space is freed; where it never is, the child gives up. A single fault refuses fewer. */
export const REFUSALS_MAX = 12

export interface ChildOptions {
  readonly file: string
  readonly arrivals: number
  /** Run on each connection once it is set up. */
  readonly pragmas: string
  /** A bug to be found: says that a message is kept before it is. */
  readonly acknowledgesEarly: boolean
  readonly faultEnds: 'at once' | 'freed' | 'never'
  /** The file that ends the fault. */
  readonly freed: string
}

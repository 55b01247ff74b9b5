/** The standing of a principal, which says whose calls need another person's decision (docs/approvals.md#who-may-decide). */

/**
 * From the highest to the lowest: `operator` (the control socket, the command line, a device of that role, an owner in a chat), `client`
 * (a device of that role), `listed` (a sender whom an entry of an allowlist names), `stranger` (a sender whom only `*` admits) and
 * `unverified` (a message that proves no sender).
 */
export const STANDINGS = ['operator', 'client', 'listed', 'stranger', 'unverified'] as const
export type Standing = (typeof STANDINGS)[number]

/** Returns whether a standing is the floor or higher. */
export const isAtLeast = (standing: Standing, floor: Standing): boolean => STANDINGS.indexOf(standing) <= STANDINGS.indexOf(floor)

/** Returns the lowest of one or more standings. */
export const lowestStanding = (first: Standing, ...others: readonly Standing[]): Standing =>
  others.reduce((lowest, standing) => (isAtLeast(standing, lowest) ? lowest : standing), first)

/** The session all steps of a run share, and the run a session is of. */

const PREFIX = 'sop:'

export const sessionOf = (runId: string): string => PREFIX + runId

/** Undefined for a session of anything else. */
export const runOfSession = (session: string): string | undefined => (session.startsWith(PREFIX) ? session.slice(PREFIX.length) : undefined)

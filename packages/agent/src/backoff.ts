/** How long to wait before the same model is asked again. */

const FIRST_MS = 500
const LONGEST_MS = 8000

/**
 * A random wait up to a limit that doubles with each attempt ("full jitter": callers that failed together do not come back
 * together), and never shorter than the provider wished.
 */
export function backoffMs(attempt: number, wishedMs = 0, random: () => number = Math.random): number {
  const limitMs = Math.min(LONGEST_MS, FIRST_MS * 2 ** attempt)
  return wishedMs + Math.ceil(random() * limitMs)
}

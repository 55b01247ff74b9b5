/** Postpones work that the person does not wait for. */

const IDLE_MS_MAX = 1000
/** Browsers without idle callbacks wait for so long instead. */
const WAIT_MS = 200

/** Calls `work` once the page has nothing to do, and after a second at the latest. Returns a function that cancels it. */
export function whenIdle(work: () => void): () => void {
  if (!('requestIdleCallback' in window)) {
    const timer = setTimeout(work, WAIT_MS)
    return () => clearTimeout(timer)
  }
  const handle = requestIdleCallback(work, { timeout: IDLE_MS_MAX })
  return () => cancelIdleCallback(handle)
}

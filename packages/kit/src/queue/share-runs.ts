/**
 * Runs `work` once for all who ask for it before it begins. A run begins once the one before has ended, so that it sees everything that
 * happened before the call. A run that fails rejects for its callers, and the next one begins all the same.
 */
export function shareRuns(work: () => Promise<void>): () => Promise<void> {
  let last: Promise<void> = Promise.resolve()
  let next: Promise<void> | undefined
  return () => {
    next ??= last.then(() => {
      next = undefined
      const run = work()
      last = run.catch(() => undefined)
      return run
    })
    return next
  }
}

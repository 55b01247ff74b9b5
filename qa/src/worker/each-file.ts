/**
 * Runs before every test file. The test files of a worker share its process, which loads the libraries once for all of them. Nothing else
 * passes from one file to the next: each file loads the modules of this repository again, and a file that leaves a global, a listener,
 * a variable of the environment or a fake clock behind fails.
 */
import { afterAll, vi } from 'vitest'
import { processState } from './process-state.ts'

// Modules hold tables, caches and counters, which another file would find as this one left them.
vi.resetModules()

const before = processState()

// The first hook of a file runs last.
afterAll(() => {
  const isFake = vi.isFakeTimers()
  vi.useRealTimers()
  const left = [...(isFake ? ['the fake clock of vitest'] : []), ...before.restore()]
  if (left.length > 0)
    throw new Error(
      `This file changed its process and did not restore: ${left.join(', ')}. Restore it in an afterEach or afterAll; if a library did it, add the file to APART in vitest.workspace.ts.`,
    )
})

/** The end of a run of vitest, for people and for the scripts that started it. */
import { writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import type { Reporter } from 'vitest/node'

/** What `scripts/run-tests.mjs` reads. */
export interface RunReport {
  readonly seed: number
  readonly passed: number
  readonly failed: number
  readonly skipped: number
  /** Errors outside of every test. */
  readonly unhandled: number
  readonly failures: readonly { readonly file: string; readonly titles: readonly string[] }[]
}

/** Writes a `RunReport` into `file`, when given, and says after a failure how to repeat the run. */
export const runReport = (
  root: string,
  { seed, file, shuffles }: { seed: number; file: string | undefined; shuffles: boolean },
): Reporter => ({
  onTestRunEnd(modules, errors, reason) {
    const counts = { passed: 0, failed: 0, skipped: 0 }
    const failures = modules.flatMap((module) => {
      const titles: string[] = []
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        counts[state === 'pending' ? 'skipped' : state]++
        if (state === 'failed') titles.push(test.fullName)
      }
      return module.ok() ? [] : [{ file: relative(root, module.moduleId), titles }]
    })
    const report: RunReport = { seed, ...counts, unhandled: errors.length, failures }
    if (file) writeFileSync(file, JSON.stringify(report))
    if (reason === 'failed') console.error(`The randoms and the order of this run: SEED=${seed}${shuffles ? ' SLUICE_SHUFFLE=1' : ''}`)
  },
})

/** The built bundle under SIGKILL: twenty lives of one data directory, and everything that was acknowledged is done once. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runLoops } from './testing/chaos/run-loops.ts'
import { summary } from './testing/chaos/summary.ts'

const LOOPS = 20
const MS_MAX = 180_000
const SEED = 1

test('nothing acknowledged is lost, nothing runs or is sent twice, and sessions keep their order', { timeout: MS_MAX }, async () => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-chaos-'))
  const result = await runLoops({ profile: 'minimal', loops: LOOPS, seed: SEED, dir, signal: AbortSignal.timeout(MS_MAX) })
  expect(result.violations, `kept in ${dir}`).toEqual([])
  // Or it has shown nothing.
  const { ended, turnsCut, ambiguous, faults } = summary(result)
  expect(ended.SIGKILL).toBeGreaterThan(LOOPS / 2)
  expect(turnsCut).toBeGreaterThan(0)
  expect(ambiguous.byKill + ambiguous.byFault).toBeGreaterThan(0)
  expect(Object.keys(faults).length).toBeGreaterThan(0)
  rmSync(dir, { recursive: true, force: true })
})

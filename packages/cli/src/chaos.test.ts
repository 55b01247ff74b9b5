/** The built bundle under SIGKILL: many lives of one data directory, and everything that was acknowledged is done once. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runLoops } from './testing/chaos/run-loops.ts'
import { runSopLoops } from './testing/chaos/sops/run-sop-loops.ts'
import { sopsSummary } from './testing/chaos/sops/summary.ts'
import { summary } from './testing/chaos/summary.ts'

const LOOPS = 20
const SOP_LOOPS = 6
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

test('no run is lost, no step has its effect twice unasked, and every approval is decided once', { timeout: MS_MAX }, async () => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-chaos-'))
  const result = await runSopLoops({ profile: 'minimal', loops: SOP_LOOPS, seed: SEED, dir, signal: AbortSignal.timeout(MS_MAX) })
  expect(result.violations, `kept in ${dir}`).toEqual([])
  // Or it has shown nothing.
  const { ended, runs, records, repeatsAnswered, decidedBy, told } = sopsSummary(result)
  expect(ended.SIGKILL).toBeGreaterThan(SOP_LOOPS / 2)
  expect(runs.completed).toBeGreaterThan(0)
  expect(records.step_cut).toBeGreaterThan(0)
  expect(repeatsAnswered).toBeGreaterThan(0)
  expect(Object.keys(decidedBy).length).toBeGreaterThan(2)
  expect(told).toBeGreaterThan(0)
  rmSync(dir, { recursive: true, force: true })
})

/** The built bundle under SIGKILL: many lives of one data directory, and everything that was acknowledged is done once. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runLoops } from './run-loops.ts'
import { runSopLoops } from './sops/run-sop-loops.ts'
import { sopsSummary } from './sops/summary.ts'
import { summary } from './summary.ts'

const LOOPS = 20
const SOP_LOOPS = 6
/** Where the machine is slow, lives are short, and what should have happened in them may not. */
const SEEDS = [1, 2, 3, 4]
const MS_MAX = 240_000

interface Loops {
  readonly profile: 'minimal'
  readonly seed: number
  readonly dir: string
  readonly signal: AbortSignal
}

/** Runs loops until they have shown what they are for. */
async function untilShown<Result extends { readonly violations: readonly unknown[] }>(
  run: (loops: Loops) => Promise<Result>,
  counts: (result: Result) => Readonly<Record<string, number>>,
): Promise<void> {
  const signal = AbortSignal.timeout(MS_MAX)
  const seen: Readonly<Record<string, number>>[] = []
  for (const seed of SEEDS) {
    const dir = mkdtempSync(join(tmpdir(), 'sluice-chaos-'))
    const result = await run({ profile: 'minimal', seed, dir, signal })
    expect(result.violations, `kept in ${dir}`).toEqual([])
    rmSync(dir, { recursive: true, force: true })
    const counted = counts(result)
    if (Object.values(counted).every((count) => count > 0)) return
    seen.push(counted)
  }
  expect.fail(`something never happened: ${JSON.stringify(seen)}`)
}

test('nothing acknowledged is lost, nothing runs or is sent twice, and sessions keep their order', { timeout: MS_MAX }, () =>
  untilShown(
    (loops) => runLoops({ ...loops, loops: LOOPS }),
    (result) => {
      const { ended, turnsCut, ambiguous, faults, questions } = summary(result)
      const inDoubt = ambiguous.byKill + ambiguous.byFault
      return { killed: ended.SIGKILL ?? 0, turnsCut, inDoubt, faults: Object.keys(faults).length, approved: questions.approved ?? 0 }
    },
  ),
)

test('no run is lost, no step has its effect twice unasked, and every approval is decided once', { timeout: MS_MAX }, () =>
  untilShown(
    (loops) => runSopLoops({ ...loops, loops: SOP_LOOPS }),
    (result) => {
      const { ended, runs, records, repeatsAnswered, decidedBy, told } = sopsSummary(result)
      const killed = ended.SIGKILL ?? 0
      return {
        killed,
        completed: runs.completed,
        cut: records.step_cut ?? 0,
        repeatsAnswered,
        deciders: Object.keys(decidedBy).length,
        told,
      }
    },
  ),
)

/** Kills the built bundle again and again on one data directory: everything that was acknowledged is done once. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runLoops } from './run-loops.ts'
import { runSopLoops } from './sops/run-sop-loops.ts'
import { sopsSummary } from './sops/summary.ts'
import type { RunOptions } from './stage.ts'
import { summary } from './summary.ts'

/** `pnpm nightly` plays long runs, and expects every kind of event. */
const IS_LONG = process.env.SLUICE_NIGHTLY === '1'
const LOOPS = IS_LONG ? 30 : 2
const SOP_LOOPS = IS_LONG ? 10 : 1
/** On a slow machine, the lives of a run may be too short for every kind of event: then the next seed is played. */
const SEEDS = [1, 2, 3, 4]
const MS_MAX = 240_000

/** Plays seed after seed until the daemon was killed, or, in a long run, until every count is above zero. */
async function playUntilCovered<Result extends { readonly violations: readonly unknown[] }>(
  run: (options: RunOptions) => Promise<Result>,
  counts: (result: Result) => Readonly<Record<string, number>> & { readonly killed: number },
): Promise<void> {
  const signal = AbortSignal.timeout(MS_MAX)
  const seen: Readonly<Record<string, number>>[] = []
  for (const seed of SEEDS) {
    const dir = mkdtempSync(join(tmpdir(), 'sluice-chaos-'))
    const result = await run({ profile: 'minimal', seed, dir, signal })
    expect(result.violations, `log and history: ${dir}`).toEqual([])
    rmSync(dir, { recursive: true, force: true })
    const counted = counts(result)
    if ((IS_LONG ? Object.values(counted) : [counted.killed]).every((count) => count > 0)) return
    seen.push(counted)
  }
  expect.fail(`Some kind of event never happened with any seed: ${JSON.stringify(seen)}`)
}

test('under SIGKILL no message is lost or runs twice, and sessions keep their order', { timeout: MS_MAX }, () =>
  playUntilCovered(
    (options) => runLoops({ ...options, loops: LOOPS }),
    (result) => {
      const { ended, turnsCut, summaries, ambiguous, faults, questions } = summary(result)
      const ambiguousReplies = ambiguous.byKill + ambiguous.byFault
      return {
        killed: ended.SIGKILL ?? 0,
        turnsCut,
        summaries,
        ambiguousReplies,
        faults: Object.keys(faults).length,
        approved: questions.approved ?? 0,
      }
    },
  ),
)

test('under SIGKILL no run is lost, no step repeats unasked, and approvals are decided once', { timeout: MS_MAX }, () =>
  playUntilCovered(
    (options) => runSopLoops({ ...options, loops: SOP_LOOPS }),
    (result) => {
      const { ended, runs, records, repeatsAnswered, decidedBy, told } = sopsSummary(result)
      const killed = ended.SIGKILL ?? 0
      return {
        killed,
        completed: runs.completed,
        cut: records.step_cut ?? 0,
        held: records.run_waiting ?? 0,
        repeatsAnswered,
        deciders: Object.keys(decidedBy).length,
        told,
      }
    },
  ),
)

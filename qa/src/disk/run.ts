/** `pnpm chaos:disk` runs the full suite on Linux with a C compiler, in some minutes. `--seed N` chooses other power cuts. */
import { parseArgs } from 'node:util'
import { type Bench, CASES, type Case, isAsExpected, setUpBench } from './cases.ts'
import { makeScratchFolders } from './scratch-folders.ts'
import { compileShim } from './shim.ts'
import { canFail } from './trace.ts'

const SIZE = { arrivals: 100, cuts: 600, outcomes: 5, faults: 15, failedSyncs: 20, cutsAfterFailedSync: 30 }
const PROBLEMS_SHOWN_MAX = 10
const PROBLEM_CHARS_MAX = 300
const PROGRESS_EVERY_MS = 10_000

const { values } = parseArgs({ options: { seed: { type: 'string', default: '1' } } })
const folders = makeScratchFolders()
try {
  const shim = compileShim(folders.libraries)
  if ('missing' in shim) throw new Error(shim.missing)
  const bench = await setUpBench({ shim: shim.path, root: folders.states, seed: Number(values.seed), size: SIZE })
  const failing = bench.sound.calls.filter(canFail)
  const syncs = failing.filter(({ operation }) => operation === 'sync')
  console.log(`${SIZE.arrivals} requests make ${failing.length} calls that can fail, including ${syncs.length} syncs; seed ${values.seed}`)
  for (const [index, part] of CASES.entries()) await runAndPrint(part, bench, `${index + 1} of ${CASES.length}`)
} finally {
  folders.remove()
}

async function runAndPrint(part: Case, bench: Bench, place: string): Promise<void> {
  const startedMs = performance.now()
  let states = 0
  let printedMs = startedMs
  const onState = (): void => {
    states += 1
    const nowMs = performance.now()
    if (nowMs - printedMs < PROGRESS_EVERY_MS) return
    printedMs = nowMs
    console.log(`...     case ${place}, ${part.title}: ${states} states after ${Math.round((nowMs - startedMs) / 1_000)} s`)
  }
  const tried = await part.run({ ...bench, onState })
  const tookSecs = ((performance.now() - startedMs) / 1_000).toFixed(1)
  const passed = isAsExpected(part, tried)
  console.log(`${passed ? 'ok' : 'FAILED'}  ${part.title} (${tried.states} states, ${tried.problems.length} with problems, ${tookSecs} s)`)
  if (passed) return
  process.exitCode = 1
  for (const problem of tried.problems.slice(0, PROBLEMS_SHOWN_MAX)) console.log(`    ${problem.slice(0, PROBLEM_CHARS_MAX)}`)
}

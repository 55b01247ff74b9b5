/**
 * Checks random interleavings of procedures until one breaks a rule: `node model-check.ts [runs] [seed]`. Prints what was done how
 * often and how it went; exits 1 with the shortest sequence of choices that breaks a rule.
 */
import fc from 'fast-check'
import { interleavings } from './interleavings.ts'
import type { Tally } from './world.ts'

const [runs = '100000', seed = String(Date.now() % 2 ** 31)] = process.argv.slice(2)
const tally: Tally = new Map()
const startedAtMs = Date.now()
const result = await fc.check(interleavings(tally), { numRuns: Number(runs), seed: Number(seed) })
for (const [name, count] of [...tally].toSorted(([a], [b]) => (a < b ? -1 : 1))) console.log(`${String(count).padStart(10)}  ${name}`)
console.log(
  `${result.numRuns} interleavings, seed ${seed}, ${Math.round((Date.now() - startedAtMs) / 1000)} s: ${result.failed ? 'VIOLATED' : '0 violations'}`,
)
if (result.failed) {
  console.error(fc.defaultReportMessage(result))
  process.exitCode = 1
}

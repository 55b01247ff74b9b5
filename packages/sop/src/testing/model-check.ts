/**
 * Checks random interleavings of procedures until one breaks a rule: `node model-check.ts [interleavings] [seed]`. Prints the
 * number of each kind of move and outcome. Exits with 1 and a short failing sequence when a rule is broken.
 */
import fc from 'fast-check'
import { interleavings } from './interleavings.ts'
import type { Tally } from './world.ts'

const BATCH = 5000
/** The time limit for finding a shorter failing sequence. */
const SHRINK_MS_MAX = 60_000

const [total = '100000', seed = String(Date.now() % 2 ** 31)] = process.argv.slice(2)
const tally: Tally = new Map()
const startedAtMs = Date.now()
const seconds = () => Math.round((Date.now() - startedAtMs) / 1000)

let done = 0
let isBroken = false
while (done < Number(total) && !isBroken) {
  const parameters = { numRuns: Math.min(BATCH, Number(total) - done), seed: Number(seed) + done }
  const result = await fc.check(interleavings(tally), { ...parameters, endOnFailure: true })
  done += result.numRuns
  isBroken = result.failed
  if (result.failed) {
    console.error(result.errorInstance instanceof Error ? result.errorInstance.message : result.errorInstance)
    const path = result.counterexamplePath ?? ''
    const shrunk = await fc.check(interleavings(), { ...parameters, path, interruptAfterTimeLimit: SHRINK_MS_MAX })
    console.error(fc.defaultReportMessage(shrunk) ?? `seed ${parameters.seed}, path ${path}`)
  } else console.error(`${done} interleavings, ${seconds()} s`)
}
for (const [name, count] of [...tally].toSorted(([a], [b]) => (a < b ? -1 : 1))) console.log(`${String(count).padStart(10)}  ${name}`)
console.log(`${done} interleavings, seed ${seed}, ${seconds()} s: ${isBroken ? 'VIOLATED' : '0 violations'}`)
process.exitCode = isBroken ? 1 : 0

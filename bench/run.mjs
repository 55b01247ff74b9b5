// `pnpm bench`: compares Sluice with bare Node servers on this machine and checks the ratios against their bars. See README.md.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { OTHER_CORES_MAX, outcomeOf } from './lib/outcome.mjs'
import { createPatience } from './lib/patience.mjs'
import { killAll } from './lib/processes.mjs'
import { writeResults } from './lib/results.mjs'
import { setting } from './lib/setting.mjs'
import { printTable } from './lib/table.mjs'
import { readOptions } from './options.mjs'
import { ROWS } from './rows.mjs'

const ROOT = resolve(import.meta.dirname, '..')
const PATIENCE_MS = { quick: 20_000, full: 60_000 }

const options = readOptions()
const note = (text) => process.stderr.write(`${text}\n`)

function build(profile) {
  const { status } = spawnSync(process.execPath, [join(ROOT, 'scripts', 'build.mjs'), profile], {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (status !== 0) throw new Error(`the ${profile} profile does not build`)
}

/** Runs the rounds of one group. A round measures both sides one after the other, under the same conditions. */
const roundsOf = (group, patience) => async (counts, round) => {
  const count = options.rounds ?? (options.quick ? counts.quick : counts.full)
  const results = []
  for (let number = 1; number <= count; number++) {
    const { result, otherCores } = await patience.round(async () => round())
    results.push(Object.fromEntries(Object.entries(result).map(([row, values]) => [row, { ...values, otherCores }])))
    note(`${group.name} ${number}/${count}${otherCores > OTHER_CORES_MAX ? ` (other processes used ${otherCores.toFixed(2)} cores)` : ''}`)
  }
  return results
}

/** Returns one outcome for each row of the group. If the group fails, each outcome holds the error and the run continues. */
async function outcomesOf(group, { scratch, patience }) {
  const scale = (count) => (options.quick ? Math.ceil(count / 10) : count)
  try {
    const rounds = await group.measure({
      scratch,
      scale,
      rounds: roundsOf(group, patience),
      minutes: options.minutes,
      base: options.base,
      peers: options.peers,
      note,
    })
    const measured = group.rows.filter((name) => rounds.some((round) => round[name]))
    return measured.map((name) => ({
      name,
      ...outcomeOf(
        ROWS[name],
        rounds.map((round) => round[name]),
      ),
    }))
  } catch (error) {
    note(`${group.name} failed: ${error.message}`)
    return group.rows.map((name) => ({ name, ...ROWS[name], error: error.message }))
  }
}

async function measure(scratch) {
  const patience = createPatience({ maxOtherCores: OTHER_CORES_MAX, budgetMs: options.quick ? PATIENCE_MS.quick : PATIENCE_MS.full })
  const outcomes = []
  for (const group of options.groups) outcomes.push(...(await outcomesOf(group, { scratch, patience })))
  return { setting: setting(scratch), quick: options.quick, outcomes }
}

function print(report) {
  if (options.write) note(`recorded in ${writeResults(report)}; 'pnpm docs:generate' writes docs/performance.md`)
  if (options.out) writeFileSync(options.out, `${JSON.stringify(report, null, 2)}\n`)
  if (options.json) return console.log(JSON.stringify(report, null, 2))
  const { node, cores, cpu, syncMs, commit } = report.setting
  printTable(report.outcomes)
  console.log(
    `\nNode ${node}, ${cores} cores of ${cpu}, ${syncMs.toFixed(2)} ms a synced write, commit ${commit}${report.quick ? ', quick' : ''}`,
  )
  console.log(
    'Rounds: those that count, of all; a round that other processes disturbed is dropped. With !, each one was disturbed, and all count.',
  )
}

if (process.platform !== 'linux') {
  note('the benchmark reads /proc and runs on Linux only')
  process.exit(2)
}
const scratch = mkdtempSync(join(options.dir, 'sluice-bench-'))
process.on('exit', () => {
  killAll()
  rmSync(scratch, { recursive: true, force: true, maxRetries: 5 })
})
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130))

if (options.build) for (const profile of ['minimal', 'full']) build(profile)
const report = await measure(scratch)
print(report)
const failed = report.outcomes.some(({ error }) => error)
const missed = report.outcomes.some(({ met }) => met === false)
process.exitCode = failed ? 2 : missed && options.check ? 1 : 0

// `pnpm test:again [files] [--runs 10] [--shuffle] [--busy]`: runs tests many times, and shows which failed and how to repeat that.
import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { closeSync, mkdirSync, openSync, rmSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { runTests } from './run-tests.mjs'

const ROOT = resolve(import.meta.dirname, '..')
const USAGE = `usage: pnpm test:again [file…] [--runs 10] [--shuffle] [--busy]

Runs the tests of the files, or all tests, several times, and ends with a table of what failed.

  --runs N    the number of runs; without it, 10
  --shuffle   another order of files and of the tests in each file in every run
  --busy      keeps one processor busy meanwhile
  SEED=N      in the environment: the seed of every run; without it, each run draws one`

/** Uses one processor until its parent ends. */
const BUSY = 'const parent = process.ppid; while (process.ppid === parent) for (let i = 0; i < 1e8; i++);'

function readArgs(args) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      runs: { type: 'string', default: '10' },
      shuffle: { type: 'boolean' },
      busy: { type: 'boolean' },
      help: { type: 'boolean' },
    },
  })
  const runs = Number(values.runs)
  if (!Number.isSafeInteger(runs) || runs < 1) throw new Error(`--runs is '${values.runs}', and has to be a whole number from 1`)
  return { ...values, runs, files: positionals }
}

/** `build` builds the bundles that tests with daemons start. Resolves to the exit code. */
export async function testAgain(args, { build }) {
  let options
  try {
    options = readArgs(args)
  } catch (error) {
    console.error(`${error.message}\n\n${USAGE}`)
    return 2
  }
  if (options.help) {
    console.log(USAGE)
    return 0
  }
  const { runs, files, shuffle = false, busy = false } = options
  if (files.length === 0 || files.some((file) => file.includes('qa'))) await build()
  const folder = join(ROOT, '.cache', 'test-again', new Date().toISOString().replaceAll(/[:.]/g, '-'))
  mkdirSync(folder, { recursive: true })
  const busyChild = busy ? spawn(process.execPath, ['-e', BUSY], { stdio: 'ignore' }) : undefined
  const failed = []
  try {
    for (let number = 1; number <= runs; number++) {
      const seed = process.env.SEED || String(randomInt(1, 2 ** 31))
      const file = join(folder, `run-${number}-seed-${seed}.log`)
      const log = openSync(file, 'w')
      const startMs = performance.now()
      const { code, report } = await runTests(files, { env: { ...process.env, SEED: seed, SLUICE_SHUFFLE: shuffle ? '1' : '' }, log })
      closeSync(log)
      const seconds = Math.round((performance.now() - startMs) / 1000)
      const outcome = code === 0 ? 'passed' : 'FAILED'
      console.log(
        `run ${number} of ${runs}  ${outcome}  ${report.passed} passed, ${report.failed} failed, ${report.skipped} skipped  ${seconds} s  SEED=${seed}`,
      )
      if (code === 0) rmSync(file)
      else failed.push({ number, seed, report, file })
    }
  } finally {
    busyChild?.kill()
  }
  if (failed.length === 0) {
    rmSync(folder, { recursive: true })
    console.log(`all ${runs} runs passed`)
    return 0
  }
  console.log(`\n${table(failed, runs)}\n`)
  for (const { number, seed, report, file } of failed) {
    const names = report.failures.map((failure) => failure.file)
    console.log(`run ${number} again: SEED=${seed} pnpm test:again ${[...names, '--runs 1', ...(shuffle ? ['--shuffle'] : [])].join(' ')}`)
    console.log(`  its output: ${relative(ROOT, file)}`)
  }
  return 1
}

/** One row for each test that failed, the most frequent first. */
function table(failed, runs) {
  const counts = new Map()
  for (const { report } of failed) {
    const rows = report.failures.flatMap(({ file, titles }) =>
      (titles.length > 0 ? titles : ['(the file itself)']).map((title) => `${file}  ${title}`),
    )
    for (const row of rows.length > 0 ? rows : ['(no test; see the output)']) counts.set(row, (counts.get(row) ?? 0) + 1)
  }
  const rows = [...counts].sort(([, one], [, other]) => other - one)
  return rows.map(([row, count]) => `${String(count).padStart(4)} of ${runs}  ${row}`).join('\n')
}

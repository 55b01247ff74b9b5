// `pnpm mutants`: plants known bugs, one at a time, in a copy of the repository; a test must fail for each of them.
// `--cluster` plants the bugs that only a run with several nodes shows, which takes minutes for each of them.
// `--only <words>` selects bugs whose name contains the words. Exits with 1 if a bug survives or can no longer be planted.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { CLUSTER_MUTANTS, MUTANTS, stalePatches } from './mutants-table.mjs'

const ROOT = resolve(import.meta.dirname, '..')
/** The time limit of the tests of one bug. A longer run is stopped and counts as broken, because the cause is unknown. */
const RUN_MS_MAX = 120_000
/** The time limit of all test files together, without a bug. */
const FIRST_RUN_MS_MAX = 1_800_000
const TEST_MS_MAX = 10_000
/** Tests of several nodes start a database, and wait until leases have expired. */
const POSTGRES_TEST_MS_MAX = 60_000
const CLUSTER_SECONDS = '60'
const OUTPUT_CHARS_MAX = 2000

/** Copies the sources of the working tree, and links the installed packages. */
function copyRepository(to) {
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' })
  for (const file of files.split('\0')) if (file && existsSync(join(ROOT, file))) cpSync(join(ROOT, file), join(to, file))
  for (const modules of ['node_modules', ...globSync(['packages/*/node_modules', 'qa/node_modules'], { cwd: ROOT })])
    linkModules(join(ROOT, modules), join(to, modules), to)
}

/** Links the installed packages, and the copies of the packages of this repository. */
function linkModules(from, to, copy) {
  mkdirSync(to, { recursive: true })
  for (const name of readdirSync(from)) {
    if (name.startsWith('.')) continue
    if (name !== '@sluice') symlinkSync(join(from, name), join(to, name), 'junction')
    else {
      mkdirSync(join(to, name))
      for (const own of readdirSync(join(from, name)))
        symlinkSync(join(copy, relative(ROOT, realpathSync(join(from, name, own)))), join(to, name, own), 'junction')
    }
  }
}

const isSlow = (file) => file.endsWith('.slow.test.ts')
const needsPostgres = (file) => file.endsWith('.postgres.test.ts')
const titlesOf = (mutants) => mutants.flatMap(({ title }) => title ?? [])

/** Runs tests of the copy, with `bail` up to the first failure. Resolves to the failures; `broken` says why the tests did not run. */
async function runTests(copy, files, { bail, msMax, titles = [] }) {
  const report = join(copy, 'report.json')
  rmSync(report, { force: true })
  const testMsMax = files.some(needsPostgres) ? POSTGRES_TEST_MS_MAX : TEST_MS_MAX
  const args = [
    'run',
    '--config',
    'vitest.workspace.ts',
    '--reporter=json',
    `--outputFile=${report}`,
    `--testTimeout=${testMsMax}`,
    `--hookTimeout=${testMsMax}`,
  ]
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs')
  const chosen = titles.length > 0 ? ['-t', titles.join('|')] : []
  const child = spawn(process.execPath, [vitest, ...args, ...(bail ? ['--bail=1'] : []), ...chosen, ...files], {
    cwd: copy,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...(files.some(isSlow) && { SLUICE_SLOW: '1' }), ...(files.some(needsPostgres) && { SLUICE_POSTGRES: '1' }) },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output = (output + data).slice(-OUTPUT_CHARS_MAX)))
  const timer = setTimeout(() => child.kill('SIGKILL'), msMax)
  const [code, signal] = await once(child, 'close')
  clearTimeout(timer)
  if (signal) return { failures: [], broken: `the tests did not end within ${msMax / 1000} s (${signal})` }
  if (!existsSync(report)) return { failures: [], broken: output }
  const { testResults, numTotalTests } = JSON.parse(readFileSync(report, 'utf8'))
  const failures = testResults.flatMap(({ name, assertionResults }) =>
    assertionResults
      .filter(({ status }) => status === 'failed')
      .map(({ fullName }) => ({ file: name.slice(realpathSync(copy).length + 1), title: fullName })),
  )
  const unloaded = testResults.find(({ status, assertionResults }) => status === 'failed' && assertionResults.length === 0)
  const missing = files.filter((file) => !testResults.some(({ name }) => name.endsWith(file)))
  if (failures.length > 0) return { failures }
  if (unloaded) return { failures, broken: `${unloaded.name}: ${unloaded.message}` }
  if (code !== 0 || numTotalTests === 0) return { failures, broken: output || 'no tests ran' }
  return missing.length > 0 ? { failures, broken: `not run: ${missing.join(', ')}` } : { failures }
}

const sourceOf = (file) => readFileSync(join(ROOT, file), 'utf8')

/** Returns the text of each patched file. */
function planted({ patches }) {
  const texts = new Map()
  for (const { file, find, replace } of patches)
    texts.set(
      file,
      (texts.get(file) ?? sourceOf(file)).replace(find, () => replace),
    )
  return texts
}

/** Runs a cluster of the copy under the faults of the bug. Resolves to the rules that found something as the failures. */
async function runInCluster(copy, { faults }) {
  const report = join(copy, 'report.json')
  rmSync(report, { force: true })
  const args = ['--suite', 'cluster', '--seconds', CLUSTER_SECONDS, '--rate', '6', '--seed', '1', '--faults', faults, '--out', report]
  const child = spawn(process.execPath, ['qa/src/chaos/run.ts', ...args], { cwd: copy, stdio: ['ignore', 'ignore', 'pipe'] })
  let output = ''
  child.stderr.on('data', (data) => (output = (output + data).slice(-OUTPUT_CHARS_MAX)))
  await once(child, 'close')
  const { cluster } = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : {}
  if (!cluster) return { failures: [], broken: output }
  return { failures: cluster.violations.map(({ rule, count, first }) => ({ file: `${rule} (${count})`, title: first[0] })) }
}

async function tryMutant(copy, mutant) {
  const startedAtMs = performance.now()
  const texts = planted(mutant)
  for (const [file, text] of texts) writeFileSync(join(copy, file), text)
  try {
    const { failures, broken } = await (mutant.faults === undefined
      ? runTests(copy, mutant.tests, { bail: true, msMax: RUN_MS_MAX, titles: titlesOf([mutant]) })
      : runInCluster(copy, mutant))
    const [first] = failures
    const outcome = broken ? 'BROKEN' : first ? 'caught' : 'SURVIVED'
    return {
      name: mutant.name,
      outcome,
      by: first ? `${first.file}: ${first.title}` : (broken ?? ''),
      tookMs: performance.now() - startedAtMs,
    }
  } finally {
    for (const file of texts.keys()) cpSync(join(ROOT, file), join(copy, file))
  }
}

const { values } = parseArgs({ options: { only: { type: 'string', default: '' }, cluster: { type: 'boolean', default: false } } })
const mutants = (values.cluster ? CLUSTER_MUTANTS : MUTANTS).filter(({ name }) => name.includes(values.only))
const copy = mkdtempSync(join(tmpdir(), 'sluice-mutants-'))
try {
  if (mutants.length === 0) throw new Error(`no bug has '${values.only}' in its name`)
  const stale = mutants.flatMap((mutant) => stalePatches(mutant, ROOT))
  if (stale.length > 0) throw new Error(`adapt these patches to the present sources:\n${stale.join('\n')}`)
  copyRepository(copy)
  const tests = [...new Set(mutants.flatMap((mutant) => mutant.tests))]
  console.log(`${mutants.length} bugs, ${tests.length} test files; first without any bug …`)
  const { failures, broken } =
    tests.length > 0 ? await runTests(copy, tests, { bail: false, msMax: FIRST_RUN_MS_MAX, titles: titlesOf(mutants) }) : { failures: [] }
  if (failures.length > 0 || broken)
    throw new Error(`the tests fail without any bug:\n${broken ?? failures.map(({ file, title }) => `${file}: ${title}`).join('\n')}`)
  const width = Math.max(...mutants.map(({ name }) => name.length))
  const outcomes = []
  for (const mutant of mutants) {
    const outcome = await tryMutant(copy, mutant)
    outcomes.push(outcome)
    console.log(
      `${outcome.outcome.padEnd(9)} ${(outcome.tookMs / 1000).toFixed(1).padStart(5)} s  ${outcome.name.padEnd(width)} ${outcome.by}`,
    )
  }
  const caught = outcomes.filter(({ outcome }) => outcome === 'caught').length
  console.log(`${caught} of ${outcomes.length} bugs caught`)
  if (caught < outcomes.length) process.exitCode = 1
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
} finally {
  rmSync(copy, { recursive: true, force: true })
}

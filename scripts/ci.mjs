// The checks of a landing, on a machine with any Node from version 18 and nothing installed. `.ci/run` starts it.
//
// First the profiles are built and `npm test` runs, which keeps all processors busy. Then the other suites run in lanes side by side, because
// each of them mostly waits for its daemons, databases and browsers. The output of a lane is printed as a whole when the lane ends.
//
// A test file that failed runs once more, so that a landing is not lost. If it passes then, the last lines name it, and it has to be listed in
// docs/unreliable-tests.md. The run fails for a file that is listed there for more than seven days, or twice. Nothing else runs again.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { problemsOf, readUnreliable } from './unreliable-tests.mjs'

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '..')
/** The exit code of a run in which nothing but tests failed. */
const TESTS_FAILED = 1
const MINUTE_MS = 60_000

const script = (name) => ['npm', 'run', '-s', name]
/** `suite` is the setting that selects the suite of a step, for the run of its failed files alone. */
const FIRST = { name: 'tests', steps: [{ command: script('build:profiles') }, { command: ['npm', 'test'], suite: '' }] }
/** Steps that read or write the same folders are in one lane: the packed packages and the copies of them. */
const LANES = [
  {
    name: 'source',
    steps: [
      { command: script('check') },
      { command: script('test:source'), suite: 'SLUICE_SLOW=1' },
      { command: script('test:packages'), suite: 'SLUICE_SLOW=1' },
    ],
  },
  { name: 'daemons', steps: [{ command: script('test:daemons'), suite: 'SLUICE_DAEMONS=1' }] },
  {
    name: 'machines',
    steps: [
      { command: script('test:postgres'), suite: 'SLUICE_POSTGRES=1' },
      { command: ['node', 'scripts/check-bare-machine.mjs'] },
      { command: script('test:browser'), suite: 'SLUICE_BROWSER=1' },
      ...(process.env.SLUICE_VM === '0' ? [] : [{ command: script('test:vm') }]),
    ],
  },
]
/** The lanes that run: the ones that SLUICE_LANES names, or all lanes. */
const chosen = process.env.SLUICE_LANES?.split(' ')
const lanes = LANES.filter(({ name }) => chosen?.includes(name) ?? true)
const alone = (suite, files) =>
  suite === ''
    ? ['npm', 'test', '--', ...files]
    : ['node', 'scripts/bootstrap.mjs', 'exec', suite, 'vitest', 'run', '--config', 'vitest.workspace.ts', ...files]

const scratch = mkdtempSync(join(tmpdir(), 'sluice-ci-'))
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }))
const running = new Set()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
  process.on(signal, () => {
    for (const child of running) child.kill(signal)
    process.exit(1)
  })

const found = { passed: 0, failed: 0, unreliable: [], problems: [] }
const say = (line) => console.error(`[ci] ${line}`)
const minutes = (sinceMs) => `${((Date.now() - sinceMs) / MINUTE_MS).toFixed(1)} min`

/** Runs a command with its output in the file of the lane. Resolves to its exit code and to the report of its tests. */
async function run([program, ...args], { name, output, isTested }) {
  const report = join(scratch, `${name}.json`)
  rmSync(report, { force: true })
  const env = isTested ? { ...process.env, SLUICE_TEST_REPORT: report } : process.env
  const child = spawn(program, args, { cwd: ROOT, stdio: ['ignore', output, output], env })
  running.add(child)
  const [code, signal] = await once(child, 'close').finally(() => running.delete(child))
  const read = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : { passed: 0, failed: 0, failures: [], unhandled: 0 }
  return { code: code ?? `signal ${signal}`, report: read, files: read.unhandled > 0 ? [] : read.failures.map(({ file }) => file) }
}

/** Runs one step, and its failed files once more. Resolves to false if it failed. */
async function step({ command, suite }, lane) {
  const options = { ...lane, isTested: suite !== undefined }
  const name = command.join(' ')
  const first = await run(command, options)
  found.passed += first.report.passed
  if (first.code === 0) return true
  if (first.code !== TESTS_FAILED || first.files.length === 0) return fails(`'${name}' failed with ${first.code}`, first.report)
  say(`'${name}' failed; these files run once more: ${first.files.join(', ')}`)
  const second = await run(alone(suite, first.files), options)
  if (second.code !== 0)
    return fails(`'${name}' failed, and again in: ${(second.files.length > 0 ? second.files : first.files).join(', ')}`, second.report)
  found.passed += second.report.passed
  found.unreliable.push(...first.files)
  return true
}

function fails(problem, { failed }) {
  found.failed += Math.max(failed, 1)
  found.problems.push(problem)
  return false
}

/** Runs the steps of a lane in order, until one fails, and prints their output. Resolves to its line in the summary. */
async function runLane({ name, steps }) {
  const beganMs = Date.now()
  const log = join(scratch, `${name}.log`)
  const output = openSync(log, 'w')
  const times = []
  for (const one of steps) {
    const stepMs = Date.now()
    const title = one.command.join(' ')
    say(`${name}: '${title}' begins`)
    const isDone = await step(one, { name, output })
    times.push(`${title} ${minutes(stepMs)}`)
    if (!isDone) break
  }
  closeSync(output)
  process.stdout.write(`\n[ci] the output of the lane ${name}\n`)
  process.stdout.write(readFileSync(log))
  return `${name}: ${minutes(beganMs)} (${times.join(', ')})`
}

const beganMs = Date.now()
const lines = [await runLane(FIRST)]
if (found.problems.length === 0) lines.push(...(await Promise.all(lanes.map(runLane))))
found.problems.push(...problemsOf(readUnreliable(ROOT), { unreliable: found.unreliable, today: new Date() }))
for (const file of found.unreliable)
  say(`UNRELIABLE: ${file} failed and then passed; list it in docs/unreliable-tests.md, and find its cause`)
for (const line of lines) console.log(`[ci] ${line}`)
console.log(`[ci] in all ${minutes(beganMs)}`)
for (const problem of found.problems) say(problem)
process.exitCode = found.problems.length === 0 ? 0 : 1
console.log(`Tests: ${found.passed} passed, ${Math.max(found.failed, process.exitCode)} failed`)

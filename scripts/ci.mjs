// The checks of a landing, on a machine with any Node from version 18 and nothing installed. `.ci/run` starts it.
//
// A test file that failed runs once more, so that a landing is not lost. If it passes then, the last lines name it, and it has to be listed in
// docs/unreliable-tests.md. The run fails for a file that is listed there for more than seven days, or twice. Nothing else runs again.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { problemsOf, readUnreliable } from './unreliable-tests.mjs'

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '..')
/** The exit code of a run in which nothing but tests failed. */
const TESTS_FAILED = 1

/** `suite` is the setting that selects the suite of a step, for the run of its failed files alone. */
const STEPS = [
  { command: ['npm', 'test'], suite: '' },
  { command: ['npm', 'run', '-s', 'test:source'], suite: 'SLUICE_SLOW=1' },
  { command: ['npm', 'run', '-s', 'test:daemons'], suite: 'SLUICE_DAEMONS=1' },
  { command: ['node', 'scripts/check-bare-machine.mjs'] },
  { command: ['npm', 'run', '-s', 'test:browser'], suite: 'SLUICE_BROWSER=1' },
  { command: ['npm', 'run', '-s', 'test:postgres'], suite: 'SLUICE_POSTGRES=1' },
  ...(process.env.SLUICE_VM === '0' ? [] : [{ command: ['npm', 'run', '-s', 'test:vm'] }]),
]
const alone = (suite, files) =>
  suite === ''
    ? ['npm', 'test', '--', ...files]
    : ['node', 'scripts/bootstrap.mjs', 'exec', suite, 'vitest', 'run', '--config', 'vitest.workspace.ts', ...files]

const scratch = mkdtempSync(join(tmpdir(), 'sluice-ci-'))
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }))
const report = join(scratch, 'report.json')
let passed = 0

function run([program, ...args], env = {}) {
  const { status, signal, error } = spawnSync(program, args, { cwd: ROOT, stdio: 'inherit', env: { ...process.env, ...env } })
  if (error) throw error
  return status ?? `signal ${signal}`
}

/** Returns the files that failed and then passed. A failure ends this process. */
function step({ command, suite }) {
  rmSync(report, { force: true })
  const env = suite === undefined ? {} : { SLUICE_TEST_REPORT: report }
  const code = run(command, env)
  passed += readReport().passed
  if (code === 0) return []
  const name = command.join(' ')
  const files = failedFiles()
  if (code !== TESTS_FAILED || files.length === 0) end(`[ci] '${name}' failed with ${code}`)
  console.error(`[ci] '${name}' failed; these files run once more: ${files.join(', ')}`)
  rmSync(report, { force: true })
  if (run(alone(suite, files), env) !== 0) end(`[ci] '${name}' failed, and again in: ${failedFiles().join(', ') || files.join(', ')}`)
  passed += readReport().passed
  return files
}

const readReport = () => (existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : { passed: 0, failures: [], unhandled: 0 })

function failedFiles() {
  const { failures, unhandled } = readReport()
  return unhandled > 0 ? [] : failures.map(({ file }) => file)
}

function end(line) {
  console.error(line)
  process.exit(1)
}

const unreliable = STEPS.flatMap(step)
const listed = readUnreliable(ROOT)
const problems = problemsOf(listed, { unreliable, today: new Date() })
for (const file of unreliable)
  console.error(`[ci] UNRELIABLE: ${file} failed and then passed; list it in docs/unreliable-tests.md, and find its cause`)
if (problems.length > 0) end(problems.map((problem) => `[ci] ${problem}`).join('\n'))
console.log(`[ci] ${passed} tests passed in ${STEPS.length} steps`)

// Runs the tests once, in a temporary folder of their own, and says what passed and what failed.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { constants as os, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '..')

/** The exit code of a run in which nothing but tests failed. The tests of these files may pass in another run. */
export const TESTS_FAILED = 1
/** The exit code of a run in which something else failed: a check, a build, an error outside of every test, or files that the tests left. */
export const OTHER_FAILURE = 2

/** Temporary entries that a test cannot remove: folders of a killed daemon, and the compile cache of Node. */
const LEFT_BY_OTHERS = /^(?:sluice-proof-|node-compile-cache$|\.)/

/**
 * Runs the tests of the given files, or all. `log` is a stream for the output, which otherwise goes to that of this process. Resolves to the exit
 * code and a `RunReport` of `qa/src/worker/run-report.ts`.
 */
export async function runTests(selection, { env = process.env, log } = {}) {
  const scratch = mkdtempSync(join(tmpdir(), 'sluice-'))
  const file = env.SLUICE_TEST_REPORT || join(scratch, 'report.json')
  const temporary = join(scratch, 't')
  mkdirSync(temporary)
  // Tests that run as another user must be able to enter, as they can enter any temporary directory.
  chmodSync(scratch, 0o755)
  chmodSync(temporary, 0o1777)
  rmSync(file, { force: true })
  const say = (line) => (log ? log.write(`${line}\n`) : console.error(line))
  try {
    const child = spawn(join(ROOT, 'node_modules', '.bin', 'vitest'), ['run', '--config', 'vitest.workspace.ts', ...selection], {
      cwd: ROOT,
      stdio: ['ignore', ...(log ? ['pipe', 'pipe'] : ['inherit', 'inherit'])],
      env: { ...env, TMPDIR: temporary, SLUICE_TEST_REPORT: file },
    })
    if (log) for (const stream of [child.stdout, child.stderr]) stream.pipe(log, { end: false })
    const [exited, signal] = await once(child, 'close')
    let code = exited ?? 128 + (os.signals[signal] ?? 1)
    const report = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined
    if (code !== 0 && (!report || report.unhandled > 0 || report.failures.length === 0)) code = OTHER_FAILURE
    const left = readdirSync(temporary).filter((name) => !LEFT_BY_OTHERS.test(name))
    if (left.length > 0) {
      say(`the tests left ${left.length} entries in the temporary directory: ${left.sort().join(', ')}`)
      code = OTHER_FAILURE
    }
    return { code, report: report ?? { seed: undefined, passed: 0, failed: 0, skipped: 0, unhandled: 0, failures: [] } }
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

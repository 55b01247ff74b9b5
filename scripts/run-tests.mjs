// Runs the tests once, in a temporary folder of their own, and says what passed and what failed.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync, writeSync } from 'node:fs'
import { constants as os, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '..')

/**
 * The exit code of a run in which more than tests failed: a check, a build, an error outside of every test, or files that the tests left.
 * Vitest ends with 1 when tests fail.
 */
export const OTHER_FAILURE = 2

/** Temporary entries that a test cannot remove: folders of a killed daemon, and the compile cache of Node. */
const LEFT_BY_OTHERS = /^(?:sluice-proof-|node-compile-cache$|\.)/

/** A file system in memory that Linux offers to every program, and the room that the tests need there at most. */
const IN_MEMORY = '/dev/shm'
const SCRATCH_BYTES = 4 * 1024 ** 3

/**
 * The folder for the temporary files of the tests: in memory, where there is room and programs may be executed, because tests of the store
 * wait for the disk most of the time otherwise. TMPDIR overrides it.
 */
function scratchRoot() {
  if (process.env.TMPDIR || !existsSync(IN_MEMORY)) return tmpdir()
  const { bavail, bsize } = statfsSync(IN_MEMORY)
  const options = readFileSync('/proc/mounts', 'utf8')
    .match(/^\S+ \/dev\/shm tmpfs (\S+)/m)?.[1]
    .split(',') ?? ['noexec']
  return bavail * bsize < SCRATCH_BYTES || options.includes('noexec') ? tmpdir() : IN_MEMORY
}

/** Runs a command to its end while this process goes on. `output` is a file descriptor, or `inherit`. Resolves to its exit code. */
export async function runBeside(command, commandArgs, { output = 'inherit', ...options } = {}) {
  const child = spawn(command, commandArgs, { cwd: ROOT, stdio: ['ignore', output, output], ...options })
  const [code, signal] = await once(child, 'close')
  return code ?? 128 + (os.signals[signal] ?? 1)
}

/**
 * Runs the tests of the given files, or all. `log` is a file descriptor for the output, which otherwise goes to that of this process. Resolves to
 * the exit code and a `RunReport` of `qa/src/worker/run-report.ts`.
 */
export async function runTests(selection, { env = process.env, log } = {}) {
  const scratch = mkdtempSync(join(scratchRoot(), 'sluice-'))
  const file = env.SLUICE_TEST_REPORT || join(scratch, 'report.json')
  const temporary = join(scratch, 't')
  mkdirSync(temporary)
  // Tests that run as another user must be able to enter, as they can enter any temporary directory.
  chmodSync(scratch, 0o755)
  chmodSync(temporary, 0o1777)
  rmSync(file, { force: true })
  try {
    let code = await runBeside(join(ROOT, 'node_modules', '.bin', 'vitest'), ['run', '--config', 'vitest.workspace.ts', ...selection], {
      env: { ...env, TMPDIR: temporary, SLUICE_TEST_REPORT: file },
      output: log,
    })
    const report = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined
    if (code !== 0 && (!report || report.unhandled > 0 || report.failures.length === 0)) code = OTHER_FAILURE
    const left = readdirSync(temporary).filter((name) => !LEFT_BY_OTHERS.test(name))
    if (left.length > 0) {
      writeSync(log ?? 2, `the tests left ${left.length} entries in the temporary directory: ${left.sort().join(', ')}\n`)
      code = OTHER_FAILURE
    }
    return { code, report: report ?? { seed: undefined, passed: 0, failed: 0, skipped: 0, unhandled: 0, failures: [] } }
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** In the guest: runs the tests of one case in order and writes each result as a line of JSON to descriptor 3. */
import { writeSync } from 'node:fs'
import { inspect } from 'node:util'
import { TEST_TIMEOUT_SECS, type VmCase, type VmTest, type VmTestResult } from '../vm-case.ts'

const REPORT = 3
const ERROR_CHARS_MAX = 8000

async function runTest(run: VmTest, timeoutSecs: number): Promise<void> {
  const undo: (() => void | Promise<void>)[] = []
  const signal = AbortSignal.timeout(timeoutSecs * 1000)
  const expired = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error(`took longer than ${timeoutSecs} s`)))
  })
  try {
    await Promise.race([run({ signal, after: (step) => void undo.push(step) }), expired])
  } finally {
    for (const step of undo.reverse()) await Promise.race([step(), expired])
  }
}

function report(result: VmTestResult): void {
  writeSync(REPORT, `${JSON.stringify(result)}\n`)
}

/** Runs the tests and ends the process. */
export async function runTests({ tests, testTimeoutSecs = TEST_TIMEOUT_SECS }: VmCase): Promise<never> {
  for (const [test, run] of Object.entries(tests)) {
    const startedAtMs = performance.now()
    const tookMs = (): number => Math.round(performance.now() - startedAtMs)
    try {
      await runTest(run, testTimeoutSecs)
      report({ test, passed: true, tookMs: tookMs() })
    } catch (error) {
      report({ test, passed: false, tookMs: tookMs(), error: inspect(error).slice(0, ERROR_CHARS_MAX) })
    }
  }
  // SIGKILL, because a running test must not keep the machine up and a normal exit waits for threads that wait for a device.
  process.kill(process.pid, 'SIGKILL')
  return new Promise<never>(() => undefined)
}

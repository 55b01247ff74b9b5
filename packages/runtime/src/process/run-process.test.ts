import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { expect, onTestFinished, test } from 'vitest'
import { runProcess } from './run-process.ts'

const PIPE_DRAIN_MS = 250

/** Keeps this process from doing anything else until the condition holds, as a machine without a free processor does. */
const stallUntil = (holds: () => boolean): void => {
  while (!holds()) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)
}

// The kernel tells of a process that has ended and was not yet waited for.
test.skipIf(process.platform !== 'linux')(
  'returns the output of a process whose end was seen before its output, and whose wait ends before the pipes are read',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'run-process-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    // The wait for the last output is over at once, and no other time limit ends.
    const clock: Clock = { ...testClock(), sleep: (ms) => (ms === PIPE_DRAIN_MS ? Promise.resolve() : new Promise(() => undefined)) }
    /** Starts a process that waits for its signal, says its name and ends. */
    const start = (name: string, onOutput?: () => void) => {
      const script = `echo $$ > ${name}.pid; while [ ! -e ${name}.go ]; do sleep 0.01; done; echo ${name}`
      const place = { file: 'sh', args: ['-c', script], cwd: folder, env: { PATH: process.env.PATH ?? '' } }
      const request = { ...place, policy: { writable: [], network: false }, timeoutMs: 60_000, outputBytesMax: 1_000 }
      return runProcess(place, { ...request, signal: new AbortController().signal, ...(onOutput && { onOutput }) }, clock)
    }
    const pidOf = (name: string) =>
      (existsSync(join(folder, `${name}.pid`)) && readFileSync(join(folder, `${name}.pid`), 'utf8').trim()) || ''
    /** Gives a process its signal, and waits in place until it has ended. */
    const end = (name: string) => {
      writeFileSync(join(folder, `${name}.go`), '')
      stallUntil(() => /^State:\s+Z/m.test(readFileSync(`/proc/${pidOf(name)}/status`, 'utf8')))
    }
    // While the first output is handled, the second process ends, and one signal tells of the ends of both.
    const first = start('first', () => end('second'))
    const second = start('second')
    await expect.poll(() => [pidOf('first'), pidOf('second')]).not.toContain('')
    end('first')
    await first
    expect((await second).stdout).toBe('second\n')
  },
)

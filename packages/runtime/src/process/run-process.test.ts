import type { Clock } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { expect, test } from 'vitest'
import { runProcess } from './run-process.ts'

const PIPE_DRAIN_MS = 250

/** Keeps this process from doing anything else, as a machine without a free processor does. */
const stall = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

test('returns the output of a process whose end was seen before its output, and whose wait ends before the pipes are read', async () => {
  // The wait for the last output is over at once, and no other time limit ends.
  const clock: Clock = { ...testClock(), sleep: (ms) => (ms === PIPE_DRAIN_MS ? Promise.resolve() : new Promise(() => undefined)) }
  const run = (script: string, onOutput?: () => void) =>
    runProcess(
      { file: 'sh', args: ['-c', script], cwd: import.meta.dirname, env: { PATH: process.env.PATH ?? '' } },
      {
        file: 'sh',
        args: [],
        cwd: import.meta.dirname,
        env: {},
        policy: { writable: [], network: false },
        timeoutMs: 60_000,
        outputBytesMax: 1_000,
        signal: new AbortController().signal,
        ...(onOutput && { onOutput }),
      },
      clock,
    )
  // While the first output is handled, the second process ends, and one signal tells of the ends of both.
  const first = run('sleep 0.1; echo first', () => stall(600))
  const second = run('sleep 0.4; echo second')
  await new Promise((resolve) => setTimeout(resolve, 20))
  stall(250)
  await first
  expect((await second).stdout).toBe('second\n')
})

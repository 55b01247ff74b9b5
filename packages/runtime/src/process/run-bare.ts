/** Programs of the sandbox backends themselves, such as a container engine's: run as they are, to their end. */
import type { Clock, RunBare } from '@sluice/sdk'
import { runProcess } from './run-process.ts'

const TIMEOUT_MS = 60_000
const OUTPUT_BYTES_MAX = 65_536

export const createRunBare =
  (clock: Clock): RunBare =>
  (command, signal) =>
    runProcess(
      command,
      { ...command, policy: { writable: [], network: true }, timeoutMs: TIMEOUT_MS, outputBytesMax: OUTPUT_BYTES_MAX, signal },
      clock,
    )

/** Runs a QEMU process from start to end. */
import { spawn } from 'node:child_process'
import type { Qemu } from './guest-packages.ts'

/** How much of a console or of error output is kept. */
export const CONSOLE_CHARS_MAX = 4000

/** Resolves to QEMU's error output when it has ended; an abort kills it. */
export async function runQemu(qemu: Qemu, args: readonly string[], signal: AbortSignal): Promise<string> {
  const firmware = qemu.firmware.flatMap((path) => ['-L', path])
  const child = spawn(qemu.program, [...firmware, ...args], { env: { ...process.env, ...qemu.env }, stdio: ['ignore', 'ignore', 'pipe'] })
  const kill = (): void => void child.kill('SIGKILL')
  signal.addEventListener('abort', kill)
  if (signal.aborted) kill()
  try {
    return await new Promise((resolve, reject) => {
      let complaints = ''
      child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
        complaints = (complaints + chunk).slice(-CONSOLE_CHARS_MAX)
      })
      child.on('error', reject).on('close', () => resolve(complaints))
    })
  } finally {
    signal.removeEventListener('abort', kill)
  }
}

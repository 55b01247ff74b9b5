/** The backend as tests try it: by the real kernel, with each launcher there is. */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Clock, Sandbox, SandboxProbe } from '@sluice/sdk'
import { runBare } from '@sluice/testkit/run-bare'
import { fsrestrict } from '../fsrestrict.ts'
import type { Launcher } from '../launchers.ts'

export const realClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  sleep: (ms) => setTimeout(ms),
}

/** Probed; `folder` is the caller's to remove. */
export async function subject(
  launchers?: () => Promise<readonly Launcher[]>,
): Promise<SandboxProbe & { sandbox: Sandbox; folder: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'fsrestrict-'))
  const sandbox = fsrestrict({ folder, clock: realClock, ...(launchers && { launchers }) })
  return { ...(await sandbox.probe(new AbortController().signal, runBare)), sandbox, folder }
}

/** The backend as tests try it: by the real kernel, as it is or as an older one would be. */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '@sluice/kit'
import type { RunBare, Sandbox, SandboxProbe } from '@sluice/sdk'
import { runBare } from '@sluice/testkit/run-bare'
import { fsrestrict } from '../fsrestrict.ts'
import { askVersionCall } from '../landlock.ts'
import type { Launcher } from '../launchers.ts'
import { encodeCalls } from '../system-calls.ts'

/** Answers `abi`, a version or an error number below zero, when it is asked for the version; runs anything else. */
export const answering =
  (abi: number): RunBare =>
  (command, signal) =>
    command.args.at(-1) === encodeCalls([askVersionCall])
      ? Promise.resolve({ exitCode: 0, stdout: String(abi), stderr: '' })
      : runBare(command, signal)

export interface SubjectOptions {
  readonly run?: RunBare
  readonly hidden?: string
  launchers?(): Promise<readonly Launcher[]>
}

/** Probed; `folder` is the caller's to remove. */
export async function subject({
  run = runBare,
  hidden,
  launchers,
}: SubjectOptions = {}): Promise<SandboxProbe & { readonly sandbox: Sandbox; readonly folder: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'fsrestrict-'))
  const sandbox = fsrestrict({ folder, hidden: hidden ?? folder, clock: systemClock, ...(launchers && { launchers }) })
  return { ...(await sandbox.probe(new AbortController().signal, run)), sandbox, folder }
}

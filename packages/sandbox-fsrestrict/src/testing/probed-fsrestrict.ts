/** Probes the backend for tests, on the real kernel or with the answers of an older one. */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '@sluice/kit'
import type { RunBare, Sandbox, SandboxProbe } from '@sluice/sdk'
import { runBare } from '@sluice/testkit/run-bare'
import { FsrestrictSandbox } from '../fsrestrict-sandbox.ts'
import { LANDLOCK_VERSION_CALL } from '../landlock.ts'
import type { Launcher } from '../launchers.ts'
import { encodeCalls } from '../system-calls.ts'

/** Answers `abi`, a version or a negative error number, to a request for the version, and runs every other command. */
export const answering =
  (abi: number): RunBare =>
  (command, signal) =>
    command.args.at(-1) === encodeCalls([LANDLOCK_VERSION_CALL])
      ? Promise.resolve({ exitCode: 0, stdout: String(abi), stderr: '' })
      : runBare(command, signal)

export interface ProbeOptions {
  readonly run?: RunBare
  readonly hidden?: string
  launchers?(): Promise<readonly Launcher[]>
}

/** Returns the probed sandbox with the result of the probe. The caller removes `folder`. */
export async function probedFsrestrict({
  run = runBare,
  hidden,
  launchers,
}: ProbeOptions = {}): Promise<SandboxProbe & { readonly sandbox: Sandbox; readonly folder: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'fsrestrict-'))
  const sandbox = new FsrestrictSandbox({ folder, hidden: hidden ?? folder, clock: systemClock, ...(launchers && { launchers }) })
  return { ...(await sandbox.probe(new AbortController().signal, run)), sandbox, folder }
}

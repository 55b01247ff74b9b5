/** Probes the backend for tests. If bubblewrap is not installed, it comes from Debian's package. */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { debianProgram } from '@sluice/qa/debian-program'
import { runBare } from '@sluice/testkit/run-bare'
import { afterAll, vi } from 'vitest'
import { UsernsSandbox } from '../userns-sandbox.ts'

export async function probedUserns({ hidden }: { readonly hidden?: string } = {}) {
  const bubblewrap = await debianProgram({ packages: ['bubblewrap'], program: 'usr/bin/bwrap' })
  // The backend looks for the program in the PATH of this process.
  if ('path' in bubblewrap) vi.stubEnv('PATH', [process.env.PATH, dirname(bubblewrap.path)].join(delimiter))
  afterAll(() => void vi.unstubAllEnvs())
  const folder = mkdtempSync(join(tmpdir(), 'userns-'))
  const sandbox = new UsernsSandbox(folder, hidden ?? folder)
  return { folder, sandbox, ...(await sandbox.probe(new AbortController().signal, runBare)) }
}

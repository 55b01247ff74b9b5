/** The backend as tests have it: bubblewrap comes from Debian's package where it is not installed. */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { debianProgram } from '@sluice/qa/debian-program'
import { runBare } from '@sluice/testkit/run-bare'
import { userns } from '../userns.ts'

export async function probedUserns({ hidden }: { readonly hidden?: string } = {}) {
  const bubblewrap = await debianProgram({ packages: ['bubblewrap'], program: 'usr/bin/bwrap' })
  // For this process and what it starts: the backend looks for the program on the PATH.
  if ('path' in bubblewrap) process.env.PATH = [process.env.PATH, dirname(bubblewrap.path)].join(delimiter)
  const folder = mkdtempSync(join(tmpdir(), 'userns-'))
  const { sandbox } = userns({ folder, hidden: hidden ?? folder })
  return { folder, sandbox, ...(await sandbox.probe(new AbortController().signal, runBare)) }
}

import type { RunBare } from '@sluice/sdk'
import { runBare } from '@sluice/testkit/run-bare'
import { describe, expect, test } from 'vitest'
import { findLandlock } from './landlock-version.ts'
import { findLaunchers, type Launcher } from './launchers.ts'
import { answering } from './testing/probed-fsrestrict.ts'

const { signal } = new AbortController()
const perl: Launcher = { name: 'perl', file: '/usr/bin/perl', args: [], canGuard: true }
const node: Launcher = { name: 'node', file: '/usr/bin/node', args: [], canGuard: false }

describe('findLandlock', () => {
  test.each([
    [-38, /no Landlock: it needs Linux 5\.13/],
    [-95, /switched off: add 'landlock'/],
    [-1, /not permitted here/],
    [-22, /error 22/],
    [0, /error 0/],
  ])('explains the kernel answer %i', async (answer, reason) => {
    expect(await findLandlock([perl], signal, answering(answer))).toEqual({ missing: expect.stringMatching(reason) })
  })

  test('tries the next launcher after one that fails', async () => {
    const run: RunBare = async (command, given) => {
      if (command.file === perl.file) return { exitCode: 2, stdout: '', stderr: "Can't locate strict.pm\n" }
      return answering(7)(command, given)
    }
    expect(await findLandlock([perl, node], signal, run)).toEqual({ abi: 7, launcher: node })
    expect(await findLandlock([perl], signal, run)).toEqual({ missing: "perl cannot make system calls: Can't locate strict.pm" })
  })

  test('reports a missing launcher, and one that cannot be started', async () => {
    expect(await findLandlock([], signal, runBare)).toEqual({ missing: 'there is no program that can start commands' })
    const launcher = { ...perl, file: '/no-such-program' }
    expect(await findLandlock([launcher], signal, runBare)).toEqual({ missing: expect.stringContaining('there is no program') })
  })

  test.skipIf(process.platform !== 'linux')('gets the same answer from each launcher of this machine', async () => {
    const answers = await Promise.all((await findLaunchers()).map((launcher) => findLandlock([launcher], signal, runBare)))
    expect(new Set(answers.map((answer) => JSON.stringify({ ...answer, launcher: undefined }))).size).toBe(1)
  })
})

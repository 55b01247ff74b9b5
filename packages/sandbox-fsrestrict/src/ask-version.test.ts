import type { RunBare } from '@sluice/sdk'
import { runBare } from '@sluice/testkit/run-bare'
import { expect, test } from 'vitest'
import { askVersion } from './ask-version.ts'
import { findLaunchers, type Launcher } from './launchers.ts'
import { answering } from './testing/subject.ts'

const { signal } = new AbortController()
const perl: Launcher = { name: 'perl', file: '/usr/bin/perl', args: [] }
const node: Launcher = { name: 'node', file: '/usr/bin/node', args: [] }

test.each([
  [-38, /no Landlock: it needs Linux 5\.13/],
  [-95, /switched off: add 'landlock'/],
  [-1, /not permitted here/],
  [-22, /error 22/],
  [0, /error 0/],
])('§2.7 rule 11: a kernel that answers %i is told apart', async (answer, why) => {
  expect(await askVersion([perl], signal, answering(answer))).toEqual({ why: expect.stringMatching(why) })
})

test('a launcher that fails makes way for the next', async () => {
  const run: RunBare = async (command, given) => {
    if (command.file === perl.file) return { exitCode: 2, stdout: '', stderr: "Can't locate strict.pm\n" }
    return answering(7)(command, given)
  }
  expect(await askVersion([perl, node], signal, run)).toEqual({ abi: 7, launcher: node })
  expect(await askVersion([perl], signal, run)).toEqual({ why: "perl cannot make system calls: Can't locate strict.pm" })
})

test('no launcher at all, or one that cannot be started, is a reason', async () => {
  expect(await askVersion([], signal, runBare)).toEqual({ why: 'there is no program to start commands with' })
  const missing = { ...perl, file: '/no-such-program' }
  expect(await askVersion([missing], signal, runBare)).toEqual({ why: expect.stringContaining('there is no program') })
})

test.skipIf(process.platform !== 'linux')('each launcher of this machine gives the same answer', async () => {
  const answers = await Promise.all((await findLaunchers()).map((launcher) => askVersion([launcher], signal, runBare)))
  expect(new Set(answers.map((answer) => JSON.stringify({ ...answer, launcher: undefined }))).size).toBe(1)
})

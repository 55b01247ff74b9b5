/** Rules for harmless commands: in the sandbox they run as they do outside. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Rules } from '../rules.ts'
import { runBare } from '../run-bare.ts'
import { CANARY, type InBench, type SandboxSubject } from './bench.ts'

/** More runs than the number of layers the kernel lets one process stack. */
const IN_A_ROW = 20

export const runRules = ({ create }: SandboxSubject, inBench: InBench): Rules => ({
  'the probe passes here and reports what it found': async () => {
    const sandbox = create()
    expect(await sandbox.probe(new AbortController().signal, runBare)).toMatchObject({
      available: true,
      detail: expect.stringMatching(/\S/),
    })
    expect(sandbox.name).toMatch(/^[a-z]+$/)
    expect(sandbox.strength).toBeGreaterThan(0)
  },

  'output and exit code come through': inBench(async ({ run }) => {
    expect(await run('echo out; echo err >&2; exit 7')).toEqual({ code: 7, stdout: 'out\n', stderr: 'err\n' })
  }),

  'arguments arrive unchanged, with any characters': inBench(async ({ run }) => {
    const args = ['a b', '', "it's", '"', '$HOME', '`id`', '*', 'two\nlines', '-x', '--', 'é', '\\']
    const { stdout } = await run('for each; do printf "%s|" "$each"; done', { args })
    expect(stdout).toBe(args.map((arg) => `${arg}|`).join(''))
  }),

  'a command gets the given environment and no other': inBench(async ({ run }) => {
    process.env.SVC_CONFORMANCE_CANARY = CANARY
    try {
      const { stdout } = await run('env', { env: { GIVEN: 'a b=$c' } })
      expect(stdout.split('\n')).toContain('GIVEN=a b=$c')
      expect(stdout).not.toContain(CANARY)
    } finally {
      delete process.env.SVC_CONFORMANCE_CANARY
    }
  }),

  'a command starts in its folder': inBench(async ({ run, workspace }) => {
    expect((await run('pwd -P; ls')).stdout).toBe(`${workspace}\n`)
  }),

  'standard input arrives, including its end': inBench(async ({ run }) => {
    expect((await run('cat', { input: 'hello' })).stdout).toBe('hello')
  }),

  'SIGPIPE ends a writer without a reader': inBench(async ({ run }) => {
    expect((await run('yes | head -n 1')).stdout).toBe('y\n')
  }),

  'a program may start threads': inBench(async ({ runPerl }) => {
    expect((await runPerl("use threads; threads->create(sub { print 'fine' })->join", [])).stdout).toBe('fine')
  }),

  'a missing program fails': inBench(async ({ run }) => {
    expect((await run('exec no-such-program-here')).code).not.toBe(0)
  }),

  'commands run one after another and in parallel': inBench(async ({ run }) => {
    for (let round = 0; round < IN_A_ROW; round++) expect((await run('echo fine')).stdout).toBe('fine\n')
    const together = await Promise.all(['a', 'b', 'c', 'd'].map((name) => run(`echo ${name} > ${name}; cat ${name}`)))
    expect(together.map(({ stdout }) => stdout)).toEqual(['a\n', 'b\n', 'c\n', 'd\n'])
  }),

  'the daemon itself is not confined': inBench(async ({ run, outside }) => {
    await run('true')
    for (const folder of outside) expect(readFileSync(join(folder, 'canary'), 'utf8')).toBe(CANARY)
  }),

  'killing a command ends the processes it started': inBench(async ({ start, workspace }) => {
    await expectSilence({ start, workspace }, '')
  }),

  'killing a command also ends processes that left its group': inBench(async ({ start, workspace }) => {
    await expectSilence({ start, workspace }, 'setsid')
  }),
})

/** Starts a process that writes all the time, kills it, and throws if it still writes. */
async function expectSilence(
  { start, workspace }: Pick<Parameters<Parameters<InBench>[0]>[0], 'start' | 'workspace'>,
  by: string,
): Promise<void> {
  const beat = join(workspace, 'beat')
  const beats = () => {
    try {
      return readFileSync(beat, 'utf8').length
    } catch {
      return 0
    }
  }
  const later = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
  const { stop } = await start(
    `${by} sh -c 'i=0; while [ $i -lt 500 ]; do printf x >> beat; i=$((i+1)); sleep 0.02; done' & wait; sleep 10`,
  )
  while (beats() < 2) await later(10)
  await stop()
  const atEnd = beats()
  await later(150)
  expect(beats()).toBe(atEnd)
}

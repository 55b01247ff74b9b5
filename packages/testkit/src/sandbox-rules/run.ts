/** Rules on commands inside a sandbox that mean no harm: they run as they would outside. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Rules } from '../rules.ts'
import { runBare } from '../run-bare.ts'
import type { SandboxSubject } from '../sandbox.ts'
import { CANARY, type InBench } from './bench.ts'

/** More than the layers a kernel lets one process stack. */
const IN_A_ROW = 20

export const runRules = ({ create }: SandboxSubject, inBench: InBench): Rules => ({
  'the probe passes here and says what it found': async () => {
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

  'arguments arrive unchanged, whatever is in them': inBench(async ({ run }) => {
    const args = ['a b', '', "it's", '"', '$HOME', '`id`', '*', 'two\nlines', '-x', '--', 'é', '\\']
    const { stdout } = await run('for each; do printf "%s|" "$each"; done', { args })
    expect(stdout).toBe(args.map((arg) => `${arg}|`).join(''))
  }),

  'the environment is the given one': inBench(async ({ run }) => {
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

  'input arrives, and so does its end': inBench(async ({ run }) => {
    expect((await run('cat', { input: 'hello' })).stdout).toBe('hello')
  }),

  'SIGPIPE ends a writer nobody reads': inBench(async ({ run }) => {
    expect((await run('yes | head -n 1')).stdout).toBe('y\n')
  }),

  'a program may start threads': inBench(async ({ runPerl }) => {
    expect((await runPerl("use threads; threads->create(sub { print 'fine' })->join", [])).stdout).toBe('fine')
  }),

  'a program that is not there fails': inBench(async ({ run }) => {
    expect((await run('exec no-such-program-here')).code).not.toBe(0)
  }),

  'commands run in a row and side by side': inBench(async ({ run }) => {
    for (let round = 0; round < IN_A_ROW; round++) expect((await run('echo fine')).stdout).toBe('fine\n')
    const together = await Promise.all(['a', 'b', 'c', 'd'].map((name) => run(`echo ${name} > ${name}; cat ${name}`)))
    expect(together.map(({ stdout }) => stdout)).toEqual(['a\n', 'b\n', 'c\n', 'd\n'])
  }),

  'the daemon itself stays free': inBench(async ({ run, outside }) => {
    await run('true')
    for (const folder of outside) expect(readFileSync(join(folder, 'canary'), 'utf8')).toBe(CANARY)
  }),

  'a killed command is gone, with what it had started': inBench(async ({ start, workspace }) => {
    await expectSilence({ start, workspace }, '')
  }),

  'so is what had left its process group': inBench(async ({ start, workspace }) => {
    await expectSilence({ start, workspace }, 'setsid')
  }),
})

/** Starts something that writes all the time, kills it, and throws if it still writes. */
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

/** Rules for the files that a command can write and read. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { Rules } from '../rules.ts'
import { CANARY, type InBench } from './bench.ts'

/** Attempts to change `$1/canary` or its folder; a successful attempt changes nothing else. */
const CHANGES = [
  'echo changed > "$1/canary"',
  'echo changed >> "$1/canary"',
  'echo new > "$1/new"',
  'mkdir "$1/new"',
  'rm -f "$1/canary"',
  'mv "$1/canary" .',
  'mv "$1/canary" "$1/moved"',
  'cp /dev/null "$1/canary"',
  'chmod 777 "$1/canary"',
  'ln -s . "$1/new"',
  'ln "$1/canary" hard && echo changed > hard',
  'ln -s "$1/canary" soft; echo changed > soft',
  'ln -s "$1" folder; echo changed > folder/canary; echo new > folder/new',
  'echo changed > "$1/../$(basename "$1")/canary"',
  'echo changed > "/proc/self/root$1/canary"',
  'echo changed > "/proc/self/cwd/../outside/canary"',
  'cd "$1" && echo changed > canary',
  'truncate -s 0 "$1/canary"; dd if=/dev/null of="$1/canary"',
]

const READS = [
  'cat "$1/canary"',
  'ln -s "$1/canary" soft; cat soft',
  'ln "$1/canary" hard; cat hard',
  'cp "$1/canary" copy; cat copy',
  'cat "/proc/self/root$1/canary"',
  'cat "/proc/1/root$1/canary"',
  'cd "$1"; cat canary',
]

export const fileRules = (inBench: InBench): Rules => ({
  'a command can change its own folder': inBench(async ({ run, workspace }) => {
    const { code } = await run('echo a > a && echo b >> a && mkdir d && mv a d/b && ln -s d l && cp d/b c && rm c && chmod 600 d/b')
    expect(code).toBe(0)
    expect(readFileSync(join(workspace, 'd/b'), 'utf8')).toBe('a\nb\n')
  }),

  'a command can read the files that programs need': inBench(async ({ run }) => {
    expect((await run('ls / > /dev/null && cat /etc/hosts > /dev/null && echo fine')).stdout).toBe('fine\n')
  }),

  'a command cannot change files outside its folder': inBench(async ({ run, outside, expectUntouched }) => {
    for (const folder of outside) {
      for (const change of CHANGES) {
        await run(change, { args: [folder] })
        expectUntouched()
      }
    }
  }),

  'a command without a writable folder changes nothing': inBench(async ({ run, workspace }) => {
    await run('echo new > new', { policy: { writable: [] } })
    expect(() => readFileSync(join(workspace, 'new'))).toThrow()
  }),

  'a command reads the readable folders of its policy and cannot change them': inBench(async ({ run, outside, expectUntouched }) => {
    for (const folder of outside) {
      const policy = { readable: [folder] }
      expect((await run('cat "$1/canary"', { args: [folder], policy })).stdout).toContain(CANARY)
      for (const change of CHANGES) {
        await run(change, { args: [folder], policy })
        expectUntouched()
      }
    }
  }),

  'a command cannot read private files': inBench(async ({ run, outside }) => {
    for (const folder of outside) {
      for (const read of READS) {
        const { stdout, stderr } = await run(read, { args: [folder] })
        expect(stdout + stderr, read).not.toContain(CANARY)
      }
    }
  }),
})

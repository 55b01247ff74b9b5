/** `pnpm create:channel` refuses bad names. Its slow suite checks the packages that it writes. */
import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = resolve(import.meta.dirname, '../../..')

function create(...args: readonly string[]): { readonly status: number | null; readonly output: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/create-channel.mjs', ...args], { cwd: ROOT, encoding: 'utf8' })
  return { status, output: stdout + stderr }
}

test.each([
  ['bizchat', "There is a channel 'bizchat' already"],
  ['Acme', "'Acme' cannot be the name of a channel"],
  ['a-b', "'a-b' cannot be the name of a channel"],
  ['../x', "'../x' cannot be the name of a channel"],
])('refuses the name %s and says why', (name, message) => {
  expect(create(name)).toMatchObject({ status: 2, output: expect.stringContaining(message) })
})

test.each([[[]], [['one', 'two']], [['one', '--unknown']]])('prints the usage for the arguments %j', (args) => {
  expect(create(...args)).toMatchObject({
    status: 2,
    output: expect.stringContaining('usage: pnpm create:channel <name>'),
  })
})

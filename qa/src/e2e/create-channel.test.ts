/** `pnpm create:channel` and `pnpm create:feature` refuse bad names. Their slow suite checks the packages that they write. */
import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'

const ROOT = resolve(import.meta.dirname, '../../..')

interface Answer {
  readonly status: number | null
  readonly output: string
}

const create = (...args: readonly string[]): Answer => script('create-channel', ...args)

function script(name: string, ...args: readonly string[]): Answer {
  const { status, stdout, stderr } = spawnSync(process.execPath, [`scripts/${name}.mjs`, ...args], { cwd: ROOT, encoding: 'utf8' })
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

test.each([
  [['tool-shell'], "There is a feature or a tool 'shell' already"],
  [['tool-file-read'], "There is a feature or a tool 'file-read' already"],
  [['channel-zulip'], "'pnpm create:channel zulip' makes a channel"],
  [['sandbox-x'], "'sandbox-x' cannot be created"],
  [['tool-../x'], "'tool-../x' cannot be created"],
  [[], 'Give one name; got 0'],
])('create:feature refuses %j and says why', (args, message) => {
  expect(script('create-feature', ...args)).toMatchObject({ status: 2, output: expect.stringContaining(message) })
})

/** The commands of features: their help, their questions, and their changes of the configuration. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { PassThrough } from 'node:stream'
import { promisify } from 'node:util'
import { scratch } from '@sluice/qa/daemons/bundle'
import { piped, sluiceWith } from '@sluice/qa/daemons/run-command'
import { type Command, defineFeature, type Host } from '@sluice/sdk'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'

const board = v.strictObject({ board: v.picklist(['a', 'b']), baud: v.optional(v.number(), 1) })
const section = {
  path: 'x_boards',
  schema: v.object({ enabled: v.optional(v.boolean(), false), boards: v.optional(v.array(board), []) }),
} as const

/** The runtime requires a provider. */
const providers = [{ kinds: ['offline'], load: async () => ({}) as never }]

const withCommand = (run: (host: Host, ...args: Parameters<Command['run']>) => Promise<number>) =>
  defineFeature({
    id: 'x-boards',
    section,
    build: (host) => ({ commands: [{ name: 'boards', summary: '', run: (context) => run(host, context) }], providers }),
  })

describe('help', () => {
  test.each([
    ['plugin install', 'usage: sluice plugin install <directory-or-archive-or-url> [options]'],
    ['hardware introspect', 'usage: sluice hardware introspect <path> [options]'],
    ['peripheral flash', '--image <file>'],
  ])('%s shows its usage even if its feature is left out', async (name, expected) => {
    const { code, out } = await sluiceWith([])(...name.split(' '), '--help')
    expect(code).toBe(0)
    expect(out).toContain(expected)
  })

  test('completions include the options of feature commands', async () => {
    const { out } = await sluiceWith([])('completion', 'bash')
    expect(out).toMatch(/'peripheral flash'\) words='[^']*--port[^']*--image/)
  })
})

test('the process waits for a command that only sleeps on the clock', async () => {
  const { dir, dispose } = scratch()
  const script = `
    import { main } from ${JSON.stringify(import.meta.resolve('./main.ts'))}
    import { defineFeature } from ${JSON.stringify(import.meta.resolve('@sluice/sdk'))}
    const run = async ({ clock }, { print }) => {
      await clock.sleep(20)
      print('done')
      return 0
    }
    const providers = [{ kinds: ['offline'], load: async () => ({}) }]
    const build = (host) => ({ commands: [{ name: 'wait', summary: '', run: (context) => run(host, context) }], providers })
    await main({ profile: 'test', features: [defineFeature({ id: 'x-wait', build })], argv: ['wait', '--data-dir', ${JSON.stringify(dir)}] })
  `
  try {
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
    expect(stdout).toBe('done\n')
  } finally {
    dispose()
  }
})

describe('questions', () => {
  const feature = withCommand(async (_host, { ask, print }) => {
    print(JSON.stringify([await ask?.('first?'), await ask?.('second?'), await ask?.('third?')]))
    return 0
  })

  test('return the answers in order, and undefined after the end of input', async () => {
    const { dir, dispose } = scratch()
    try {
      const stdin = Object.assign(new PassThrough(), { isTTY: true as const })
      stdin.end('one\ntwo\n')
      const { out, err } = await sluiceWith([feature], stdin)('boards', '--data-dir', dir)
      expect(out).toBe('["one","two",null]\n')
      expect(err).toContain('first?')
    } finally {
      dispose()
    }
  })

  test.each([
    ['from a pipe', piped('one\n'), []],
    ['with --json', Object.assign(new PassThrough(), { isTTY: true as const }), ['--json']],
  ])('are not asked %s', async (_, stdin, more) => {
    const { dir, dispose } = scratch()
    try {
      expect(await sluiceWith([feature], stdin)('boards', '--data-dir', dir, ...more)).toMatchObject({ code: 0, out: '[null,null,null]\n' })
    } finally {
      dispose()
    }
  })
})

describe('additions to the configuration', () => {
  const add = (entry: Record<string, string | number>) =>
    sluiceWith([
      withCommand(async (_host, { addToConfig }) => {
        await addToConfig({ list: 'x_boards.boards', entry, set: { 'x_boards.enabled': true } })
        return 0
      }),
    ])
  const added = '[[x_boards.boards]]\nboard = "a"\nbaud = 9600\n'

  test.each([
    ['an empty file', '', `[x_boards]\nenabled = true\n\n${added}`],
    [
      'a file with comments',
      '# mine\n[x_boards] # on\nenabled = false # off\n',
      `# mine\n[x_boards] # on\nenabled = true # off\n\n${added}`,
    ],
    [
      'a file with such a table',
      '[x_boards]\nenabled = true\n\n[[x_boards.boards]] # first\nboard = "b"\n',
      `[x_boards]\nenabled = true\n\n[[x_boards.boards]] # first\nboard = "b"\n\n${added}`,
    ],
    [
      'a file with an inline list',
      '[x_boards]\nboards = [{ board = "b" }] # mine\n',
      '[x_boards]\nboards = [{ board = "b" }, { board = "a", baud = 9600 }] # mine\nenabled = true\n',
    ],
  ])('extend %s and keep the rest', async (_, text, expected) => {
    const { dir, dispose } = scratch(text)
    try {
      expect(await add({ board: 'a', baud: 9600 })('boards', '--data-dir', dir)).toMatchObject({ code: 0 })
      expect(readFileSync(`${dir}/config.toml`, 'utf8').trim()).toBe(expected.trim())
    } finally {
      dispose()
    }
  })

  test('an invalid entry is not written', async () => {
    const { dir, dispose } = scratch('# mine\n')
    try {
      expect((await add({ board: 'nonsense' })('boards', '--data-dir', dir)).code).not.toBe(0)
      expect(readFileSync(`${dir}/config.toml`, 'utf8')).toBe('# mine\n')
    } finally {
      dispose()
    }
  })
})

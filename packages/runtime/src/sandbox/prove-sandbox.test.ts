import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Sandbox } from '@sluice/sdk'
import { runBare } from '@sluice/testkit/run-bare'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { noSandbox } from './no-sandbox.ts'
import { proveSandbox } from './prove-sandbox.ts'

const base = mkdtempSync(join(tmpdir(), 'prove-'))
const [workspace, outside] = [join(base, 'work/space'), join(base, 'outside')]
beforeAll(() => mkdirSync(outside))
afterAll(() => rmSync(base, { recursive: true, force: true }))

const { signal } = new AbortController()
const prove = (wrap: Sandbox['wrap'], places = [outside]) =>
  proveSandbox({ ...noSandbox, wrap }, { run: runBare, signal, workspace, places })
/** Confines by removing attempts from the script: lines of it, or its arguments. */
const without =
  (...patterns: RegExp[]): Sandbox['wrap'] =>
  (command) => ({
    ...command,
    args: command.args.map((each) => patterns.reduce((text, pattern) => text.replaceAll(pattern, 'false'), each)),
  })
const READS = /cat "\$1[^\n]*|cat soft[^\n]*|ln "[^\n]*/g
const CHANGES = /^ *\(echo[^\n]*|^ *\(: >"[^\n]*|^ *rm[^\n]*/gm
const SOCKETS = /^.*\/socket$/g
const ABSTRACT = /^@sluice.*$/g

describe('proveSandbox', () => {
  test('finds a file outside that can be read', async () => {
    expect(await prove((command) => command)).toBe('a file outside was read')
  })

  test('finds a file outside that can be changed', async () => {
    expect(await prove(without(READS))).toBe('a file outside was changed')
  })

  test('finds a socket of another program that can be reached', async () => {
    expect(await prove(without(READS, CHANGES))).toMatch(new RegExp(`^the socket ${outside}/sluice-proof-.*/socket was reached$`))
  })

  test.skipIf(process.platform !== 'linux')('finds an abstract socket that can be reached', async () => {
    expect(await prove(without(READS, CHANGES, SOCKETS))).toMatch(/^the socket @sluice-proof-.* was reached$/)
  })

  test('finds a network that can be reached', async () => {
    expect(await prove(without(READS, CHANGES, SOCKETS, ABSTRACT))).toBe('the network was reached')
  })

  test('reports the workspace in which no command works', async () => {
    expect(await prove((command) => ({ ...command, file: 'false' }))).toBe(`no command can work in ${workspace}: exit code 1`)
  })

  test('runs the command as tools run theirs: inside the workspace', async () => {
    const seen: unknown[] = []
    await prove((command, policy) => {
      seen.push(command.cwd.startsWith(`${workspace}/`), policy)
      return command
    })
    expect(seen).toEqual([true, { writable: [workspace], network: false }])
  })

  test('plants files in writable places outside the workspace only', async () => {
    const seen: string[] = []
    const wrap: Sandbox['wrap'] = (command) => {
      seen.push(...command.args)
      return command
    }
    await prove(wrap, [join(base, 'missing'), join(workspace, 'inner'), workspace, outside, join(outside, '.')])
    expect(seen.filter((word) => /sluice-proof-[^/]*$/.test(word) && word.startsWith('/'))).toHaveLength(1)
  })

  test('removes everything it made, the workspace included', async () => {
    await prove((command) => command)
    expect(readdirSync(base)).toEqual(['outside'])
    expect(readdirSync(outside)).toEqual([])
    mkdirSync(workspace, { recursive: true })
    await prove((command) => command)
    expect(existsSync(workspace)).toBe(true)
    expect(readdirSync(workspace)).toEqual([])
    rmSync(join(base, 'work'), { recursive: true })
  })
})

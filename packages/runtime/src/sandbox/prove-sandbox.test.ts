import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Sandbox } from '@sluice/sdk'
import { runBare } from '@sluice/testkit/run-bare'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { noSandbox } from './no-sandbox.ts'
import { proveSandbox } from './prove-sandbox.ts'

const base = mkdtempSync(join(tmpdir(), 'prove-'))
const [workspace, outside] = [join(base, 'work/space'), join(base, 'outside')]
beforeAll(() => mkdirSync(outside))
afterAll(() => rmSync(base, { recursive: true, force: true }))

const { signal } = new AbortController()
const prove = (wrap: Sandbox['wrap'], places = [outside], sockets: readonly string[] = []) =>
  proveSandbox({ ...noSandbox, wrap }, { run: runBare, signal, workspace, places, sockets })
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
const PORT = /^(?:bash|[^\S\n]+(?:perl|nc)) .*$/gm

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

  test('finds a socket of another program that lies in no place where one can be planted', async () => {
    const path = join(base, 'other')
    await using server = createServer((socket) => socket.destroy())
    await once(server.listen(path), 'listening')
    expect(await prove(without(READS, CHANGES, SOCKETS, ABSTRACT), [outside], [path])).toBe(`the socket ${path} was reached`)
    expect(await prove(without(READS, CHANGES), [outside], [path])).toContain(`the socket ${outside}/sluice-proof-`)
  })

  test('does not try sockets in the workspace, which commands may reach', async () => {
    const seen: string[] = []
    const wrap: Sandbox['wrap'] = (command) => {
      seen.push(...command.args)
      return command
    }
    await prove(wrap, [], [join(workspace, 'own'), join(base, 'other')])
    expect(seen.filter((word) => word.startsWith(base))).toEqual([join(base, 'other')])
  })

  test('does not count what another proof connects to as a leak', async () => {
    const wrap: Sandbox['wrap'] = async (command) => {
      const [folder = ''] = command.args.filter((word) => /sluice-proof-[^/]*$/.test(word) && word.startsWith('/'))
      await once(connect(join(folder, 'socket')), 'close')
      return without(READS, CHANGES, SOCKETS, ABSTRACT, PORT)(command, { writable: [], network: false })
    }
    expect(await prove(wrap)).toBeUndefined()
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

  describe('folders that a killed daemon planted', () => {
    const planted = (name: string) => {
      const folder = join(outside, name)
      mkdirSync(folder)
      writeFileSync(join(folder, 'canary'), '')
      return folder
    }
    const left = () => readdirSync(outside).sort()
    const longAgo = new Date(0)
    afterEach(() => {
      for (const name of left()) rmSync(join(outside, name), { recursive: true })
    })

    test('are removed when no process listens at their socket any more', async () => {
      const path = join(planted('sluice-proof-killed'), 'socket')
      // A process that is killed leaves its socket.
      const listener = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`
      expect(spawnSync(process.execPath, ['-e', listener]).signal).toBe('SIGKILL')
      expect(readdirSync(join(outside, 'sluice-proof-killed'))).toContain('socket')
      await prove((command) => command)
      expect(left()).toEqual([])
    })

    test('stay while a process listens, and while they are too young to tell', async () => {
      const path = join(planted('sluice-proof-in-use'), 'socket')
      await using server = createServer((socket) => socket.destroy())
      await once(server.listen(path), 'listening')
      utimesSync(join(outside, 'sluice-proof-in-use'), longAgo, longAgo)
      planted('sluice-proof-new')
      utimesSync(planted('sluice-proof-old'), longAgo, longAgo)
      utimesSync(planted('other'), longAgo, longAgo)
      await prove((command) => command)
      expect(left()).toEqual(['other', 'sluice-proof-in-use', 'sluice-proof-new'])
    })
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

import { spawnSync } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ProcessPipes, Sandbox, SpawnRequest } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { type TestHost, testHost } from '@sluice/testkit/host'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { noSandbox, refusingSandbox } from '../sandbox/no-sandbox.ts'
import { createSpawn } from './spawn.ts'

const PATH = process.env.PATH ?? '/usr/bin:/bin'
const LIMITS = { memoryBytesMax: 1 << 30, processesMax: 100, fileBytesMax: 1 << 20, cpuSecsMax: 60 }
let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'spawn-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const setUp = (sandbox: Sandbox = noSandbox, required = false, closed: readonly string[] = []) => {
  const host = testHost({ clock: testClock() })
  const spawn = createSpawn({
    sandbox: () => sandbox,
    required,
    limits: LIMITS,
    workspaces: [join(folder, 'a-workspace')],
    closed,
    log: host.log,
    clock: host.clock,
  })
  const sh = (script: string, changes: Partial<SpawnRequest> = {}) =>
    spawn({
      file: 'sh',
      args: ['-c', script],
      cwd: folder,
      env: { PATH },
      policy: { writable: [folder], network: false },
      timeoutMs: 60_000,
      outputBytesMax: 10_000,
      signal: new AbortController().signal,
      ...changes,
    })
  return { host, spawn, sh }
}

describe('createSpawn', () => {
  test('passes on devices that exist, and rejects paths that are not below /dev', async () => {
    const given: unknown[] = []
    const wrap: Sandbox['wrap'] = (command, { devices }) => {
      given.push(devices)
      return command
    }
    const { sh } = setUp({ ...noSandbox, wrap })
    const withDevices = (...devices: string[]) => sh('true', { policy: { writable: [folder], network: false, devices } })
    await withDevices('/dev/null', '/dev/no-such-device')
    await sh('true')
    expect(given).toEqual([['/dev/null'], undefined])
    for (const path of ['/etc', '/dev', '/dev/', '/dev/../etc', '/dev/bus/..', 'dev/null'])
      await expect(withDevices(path)).rejects.toMatchObject({ code: 'internal' })
  })

  test('refuses a writable folder that holds keys or code of the daemon', async () => {
    const inner = join(folder, 'closed', 'workspace')
    mkdirSync(inner, { recursive: true })
    const link = join(folder, 'link-to-all')
    symlinkSync(folder, link)
    const { sh } = setUp({ ...noSandbox, strength: 1 }, false, [join(folder, 'closed')])
    const writing = (writable: string) => sh('true', { cwd: inner, policy: { writable: [writable], network: false } })
    for (const outer of [folder, link, join(folder, 'closed')])
      await expect(writing(outer)).rejects.toMatchObject({ code: 'forbidden', message: expect.stringContaining('[agent] workspace') })
    expect(await writing(inner)).toMatchObject({ exitCode: 0 })
    expect(await setUp(noSandbox, false, [folder]).sh('true')).toMatchObject({ exitCode: 0 })
  })

  /** Polls until the condition holds; the time limit of the test ends it otherwise. */
  const until = async (holds: () => boolean) => {
    while (!holds()) await new Promise((resolve) => setTimeout(resolve, 2))
  }
  const isAlive = (pid: number) => {
    try {
      // A zombie counts as ended.
      return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
    } catch {
      return false
    }
  }
  /** The process id that a script writes to a file, once it is written. */
  const pidFrom = async (name: string) => {
    const path = join(folder, name)
    await until(() => existsSync(path) && readFileSync(path, 'utf8').endsWith('\n'))
    return Number(readFileSync(path, 'utf8'))
  }

  /** Advances the clock, much slower than real time, until the process has ended. */
  const finish = async <T>(host: TestHost, running: Promise<T>): Promise<T> => {
    let isDone = false
    const done = running.finally(() => {
      isDone = true
    })
    while (!isDone) {
      await new Promise((resolve) => setTimeout(resolve, 2))
      await host.advance(1)
    }
    return done
  }

  test('returns output, exit code and the name of the sandbox', async () => {
    expect(await setUp().sh('echo out; echo err >&2; exit 3')).toEqual({
      exitCode: 3,
      signal: null,
      timedOut: false,
      stdout: 'out\n',
      stderr: 'err\n',
      truncated: false,
      sandbox: 'none',
    })
  })

  test('passes on exactly the given environment', async () => {
    const { stdout } = await setUp().sh('env', { file: '/usr/bin/env', args: [], env: { PATH, ONLY: 'this' } })
    expect(stdout.split('\n').sort()).toEqual(['', 'ONLY=this', `PATH=${PATH}`])
  })

  test('writes the input to standard input, which is empty without one', async () => {
    const { sh } = setUp()
    expect((await sh('cat', { input: 'hello' })).stdout).toBe('hello')
    expect((await sh('cat')).stdout).toBe('')
  })

  test('talks to a program until it is aborted, whatever the limits of time and output', async () => {
    const { host, sh } = setUp()
    const abort = new AbortController()
    const started = Promise.withResolvers<ProcessPipes>()
    const running = sh('while read line; do echo "got $line"; done', {
      onStart: started.resolve,
      timeoutMs: Number.POSITIVE_INFINITY,
      outputBytesMax: 10,
      signal: abort.signal,
    })
    const { output, write } = await started.promise
    const chunks = output[Symbol.asyncIterator]()
    const heard: string[] = []
    for (let count = 1; count <= 3; count++) {
      await write(`${count}\n`)
      heard.push(new TextDecoder().decode((await chunks.next()).value))
    }
    abort.abort()
    expect(await finish(host, running)).toMatchObject({ timedOut: false, stdout: '' })
    expect(heard.join('')).toBe('got 1\ngot 2\ngot 3\n')
    await write('a program that has ended takes anything')
  })

  test('ignores input that the program does not read', async () => {
    expect((await setUp().sh('exit 0', { input: 'x'.repeat(1_000_000) })).exitCode).toBe(0)
  })

  test('returns the signal that a program sends itself', async () => {
    expect(await setUp().sh('kill -PIPE $$')).toMatchObject({ exitCode: null, signal: 'SIGPIPE', timedOut: false })
  })

  test('SIGPIPE is not ignored in the child', async () => {
    expect((await setUp().sh('yes | head -n 1')).stdout).toBe('y\n')
  })

  test('passes on no descriptor that the daemon opened', async () => {
    const own = openSync(folder, 'r')
    const { stdout } = await setUp().sh('ls -l /proc/$$/fd')
    closeSync(own)
    expect(stdout).toContain('-> ')
    expect(stdout).not.toContain(folder)
  })

  test('passes on no descriptor that the daemon inherited', () => {
    const [handed, high] = [openSync(folder, 'r'), 60]
    const script = `
    import { createRunBare } from ${JSON.stringify(join(import.meta.dirname, 'run-process.ts'))}
    import { systemClock } from ${JSON.stringify(join(import.meta.dirname, '../../../kit/src/time/system-clock.ts'))}
    const command = { file: 'ls', args: ['-l', '/proc/self/fd'], cwd: '/', env: process.env }
    const { stdout } = await createRunBare(systemClock)(command, new AbortController().signal)
    console.log(stdout)`
    const stdio = Array.from({ length: high + 1 }, (_, fd) => (fd === high ? handed : fd === 1 ? 'pipe' : 'ignore'))
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      cwd: import.meta.dirname,
      stdio,
      encoding: 'utf8',
    })
    closeSync(handed)
    expect(stdout).toContain('1 -> ')
    expect(stdout).not.toContain(folder)
  })

  test('keeps the beginning and the end of output over the limit, and reports all of it', async () => {
    const pieces: string[] = []
    const { sh } = setUp()
    const result = await sh('head -c 4995 /dev/zero | tr "\\0" x; echo last; echo short >&2', {
      outputBytesMax: 100,
      onOutput: (stream, text) => pieces.push(`${stream}:${text}`),
    })
    expect(result.stdout).toBe(`${'x'.repeat(50)}\n[… 4,900 bytes were dropped …]\n${'x'.repeat(45)}last\n`)
    expect(result.stderr).toBe('short\n')
    expect(result.truncated).toBe(true)
    expect(pieces.join('')).toContain('stderr:short')
    expect(
      pieces
        .filter((piece) => piece.startsWith('stdout:'))
        .join('')
        .replaceAll('stdout:', ''),
    ).toHaveLength(5000)
  })

  test('bounds endless output, and ends it at the time-out', async () => {
    const { host, sh } = setUp()
    const seen: string[] = []
    const running = sh('yes', { outputBytesMax: 1000, timeoutMs: 500, onOutput: (_, text) => seen.push(text) })
    await until(() => seen.join('').length >= 1000)
    await host.advance(500)
    const result = await finish(host, running)
    expect(result).toMatchObject({ timedOut: true, signal: 'SIGTERM', truncated: true })
    expect(result.stdout.length).toBeLessThan(1100)
  })

  test('ends the whole process group at the time-out', async () => {
    const { host, sh } = setUp()
    const running = sh('sleep 60 & echo $! > child.pid; wait', { timeoutMs: 1000 })
    const child = await pidFrom('child.pid')
    await host.advance(1000)
    expect(await finish(host, running)).toMatchObject({ timedOut: true, exitCode: null, signal: 'SIGTERM' })
    await until(() => !isAlive(child))
  })

  test('sends SIGKILL two seconds after an ignored SIGTERM, not before', async () => {
    const { host, sh } = setUp()
    const running = sh('trap "" TERM; echo $$ > stubborn.pid; while :; do sleep 0.01; done', { timeoutMs: 1000 })
    const pid = await pidFrom('stubborn.pid')
    await host.advance(1000)
    await host.advance(1900)
    expect(isAlive(pid)).toBe(true)
    await host.advance(200)
    await until(() => !isAlive(pid))
    expect(await finish(host, running)).toMatchObject({ timedOut: true, signal: 'SIGKILL' })
  })

  test('ends the group on abort, which is not a time-out', async () => {
    const { host, sh } = setUp()
    const abort = new AbortController()
    const running = sh('echo $$ > aborted.pid; sleep 60', { signal: abort.signal })
    const pid = await pidFrom('aborted.pid')
    abort.abort()
    await until(() => !isAlive(pid))
    expect(await finish(host, running)).toMatchObject({ timedOut: false, signal: 'SIGTERM' })
  })

  test('starts no process after an abort', async () => {
    await expect(setUp().sh('touch started', { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'aborted' })
    expect(existsSync(join(folder, 'started'))).toBe(false)
  })

  test('ends background processes of the group with the program', async () => {
    const { host, sh } = setUp()
    const running = sh('sleep 60 & echo $! > left.pid; echo done')
    const child = await pidFrom('left.pid')
    expect(await finish(host, running)).toMatchObject({ exitCode: 0, stdout: 'done\n' })
    await until(() => !isAlive(child))
  })

  test('does not wait for a process that left the group and holds the pipe', async () => {
    const { host, sh } = setUp()
    const running = sh("setsid sh -c 'echo $$ > daemon.pid; exec sleep 60' & echo done; while [ ! -s daemon.pid ]; do sleep 0.01; done")
    const daemon = await pidFrom('daemon.pid')
    try {
      expect(await finish(host, running)).toMatchObject({ exitCode: 0, stdout: 'done\n' })
      expect(isAlive(daemon)).toBe(true)
    } finally {
      process.kill(daemon, 'SIGKILL')
    }
  })

  test('rejects with a code that says why a program cannot start', async () => {
    const { sh } = setUp()
    await expect(sh('', { file: 'no-such-program' })).rejects.toMatchObject({ code: 'not_found' })
    await expect(sh('', { file: folder })).rejects.toMatchObject({ code: 'forbidden' })
    await expect(sh('echo a\0b')).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(sh('echo', { args: ['-c', 'x'.repeat(10_000_000)] })).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('makes a workspace that is missing, and no other working folder', async () => {
    const { sh } = setUp()
    const [cwd, other] = [join(folder, 'a-workspace'), join(folder, 'no-workspace')]
    const policy = { writable: [], network: false }
    expect((await sh('pwd', { cwd, policy })).stdout).toBe(`${cwd}\n`)
    await expect(sh('pwd', { cwd: other, policy })).rejects.toMatchObject({ code: 'not_found' })
  })

  test('makes missing writable folders', async () => {
    const fresh = join(folder, 'fresh/workspace')
    const { sh } = setUp()
    expect((await sh('pwd', { cwd: fresh, policy: { writable: [fresh], network: false } })).stdout).toBe(`${fresh}\n`)
  })

  test('gives the sandbox folders without links', async () => {
    const [real, link] = [join(folder, 'real'), join(folder, 'link')]
    symlinkSync(real, link)
    mkdirSync(real)
    const seen: unknown[] = []
    const watching: Sandbox = {
      ...noSandbox,
      wrap: (command, policy) => {
        seen.push(command.cwd, policy.writable)
        return command
      },
    }
    await setUp(watching).sh('true', { cwd: link, policy: { writable: [link], network: false } })
    expect(seen).toEqual([real, [real]])
    await expect(setUp().sh('true', { cwd: join(folder, 'none') })).rejects.toMatchObject({ code: 'not_found' })
  })

  test('runs the wrapped command, and releases it afterwards', async () => {
    let released = 0
    const release = async () => {
      released++
    }
    const wrapping: Sandbox = {
      ...noSandbox,
      name: 'wrapping',
      strength: 5,
      wrap: (command, policy) => ({
        ...command,
        args: ['-c', `echo "wrapped network=${policy.network} pwd=$PWD"`],
        release,
      }),
    }
    const { sh } = setUp(wrapping, true)
    expect(await sh('echo no')).toMatchObject({ stdout: `wrapped network=false pwd=${folder}\n`, sandbox: 'wrapping' })
    expect(released).toBe(1)
    await expect(
      setUp({ ...wrapping, wrap: () => ({ file: 'no-such-program', args: [], cwd: folder, env: {}, release }) }).sh(''),
    ).rejects.toMatchObject({
      code: 'not_found',
    })
    expect(released).toBe(2)
  })

  test('refuses commands where a required sandbox is missing', async () => {
    await expect(setUp(noSandbox, true).sh('touch ran')).rejects.toMatchObject({ code: 'unavailable' })
    await expect(setUp(refusingSandbox('none works')).sh('touch ran')).rejects.toMatchObject({ code: 'unavailable', message: 'none works' })
    expect(existsSync(join(folder, 'ran'))).toBe(false)
  })

  test('runs no command when the sandbox fails to wrap it', async () => {
    const broken: Sandbox = {
      ...noSandbox,
      strength: 5,
      wrap: () => {
        throw new Error('no ruleset')
      },
    }
    await expect(setUp(broken).sh('touch ran')).rejects.toMatchObject({ code: 'unavailable' })
    expect(existsSync(join(folder, 'ran'))).toBe(false)
  })
})

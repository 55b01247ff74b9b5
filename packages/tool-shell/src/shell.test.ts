import type { ClientId, SpawnRequest, SpawnResult, Standing, ToolContext, ToolReport } from '@sluice/sdk'
import { type TestHostOverrides, testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { shellSection } from './config.ts'
import feature from './index.ts'

const done: SpawnResult = { exitCode: 0, signal: null, timedOut: false, stdout: '', stderr: '', truncated: false, sandbox: 'jail' }

interface Arranged extends TestHostOverrides {
  readonly config?: object
  readonly session?: string
  readonly standing?: Standing
}

const arrange = (result: Partial<SpawnResult> = {}, { config = {}, ...overrides }: Arranged = {}) => {
  const requests: SpawnRequest[] = []
  const abort = new AbortController()
  const host = testHost({
    spawn: async (request) => {
      requests.push(request)
      return { ...done, ...result }
    },
    ...overrides,
  })
  const parts = feature.build(host, v.parse(shellSection.schema, config))
  const [tool, ...others] = parts.tools ?? []
  if (!tool) throw new Error('The feature has no tool')
  const reports: ToolReport[] = []
  const context: ToolContext = {
    ...host.by,
    report: (given) => reports.push(given),
    client: 'client' as ClientId,
    session: overrides.session ?? null,
    standing: overrides.standing ?? 'operator',
    turn: 'turn',
    signal: abort.signal,
    trace: { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), parentId: null },
  }
  const run = async (input: object) => tool.run(v.parse(tool.input, input), context)
  const call = async (name: string, input: object, more: Partial<ToolContext> = {}) => {
    const other = others.find((one) => one.name === name) ?? expect.fail(name)
    return other.run(v.parse(other.input, input), { ...context, ...more })
  }
  const risk = (command: string) => (typeof tool.risk === 'function' ? tool.risk({ command }, host.by) : tool.risk)
  const source = (command: string) => (typeof tool.untrusted === 'function' ? tool.untrusted({ command }, host.by) : tool.untrusted)
  const decider = (command: string) =>
    typeof tool.decider === 'function' ? tool.decider({ command }, { ...host.by, standing: overrides.standing ?? 'client' }) : tool.decider
  const precheck = async (command: string) => tool.precheck?.({ command, timeout_secs: 60 }, context)
  const asks = (command: string) => typeof tool.alwaysAsks === 'function' && tool.alwaysAsks({ command }, host.by)
  return { run, call, risk, asks, source, decider, precheck, requests, reports, abort, host, parts, others }
}

afterEach(() => vi.unstubAllEnvs())

describe('shell tool', () => {
  test('its output is untrusted with network, and without network when the command names attachments', () => {
    const commands = ['cat notes.txt', 'cat attachments/a.txt']
    expect(commands.map(arrange().source)).toEqual([undefined, 'shell'])
    expect(commands.map(arrange({}, { config: { network: true } }).source)).toEqual(['shell', 'shell'])
  })

  test('runs sh in the workspace, the only writable folder, without network', async () => {
    const { run, requests } = arrange()
    await run({ command: 'ls -l' })
    expect(requests).toEqual([
      {
        file: 'sh',
        args: ['-c', 'ls -l'],
        cwd: '/workspace',
        env: expect.anything(),
        policy: { writable: ['/workspace'], network: false },
        timeoutMs: 60_000,
        outputBytesMax: 65_536,
        signal: expect.any(AbortSignal),
        onOutput: expect.any(Function),
      },
    ])
  })

  test('passes on only PATH, HOME, TERM, LANG and env_passthrough', async () => {
    vi.stubEnv('PATH', '/usr/bin:.::/workspace/bin:/bin')
    vi.stubEnv('LANG', 'de_DE.UTF-8')
    vi.stubEnv('SVC_PROVIDER_API_KEY', 'canary')
    vi.stubEnv('WANTED', 'yes')
    const { run, requests } = arrange({}, { config: { env_passthrough: ['WANTED', 'NOT_SET', 'PATH'] } })
    await run({ command: 'ls' })
    expect(requests[0]?.env).toEqual({ PATH: '/usr/bin:/bin', HOME: '/workspace', TERM: 'dumb', LANG: 'de_DE.UTF-8', WANTED: 'yes' })
  })

  test('uses the default PATH if that of the daemon has no absolute folder', async () => {
    vi.stubEnv('PATH', '.')
    const { run, requests } = arrange()
    await run({ command: 'ls' })
    expect(requests[0]?.env.PATH).toBe('/usr/local/bin:/usr/bin:/bin')
  })

  test('accepts a shorter time limit than configured, but no longer one', async () => {
    const { run, requests } = arrange({}, { config: { timeout_secs: 10, network: true, output_bytes_max: 2048 } })
    await run({ command: 'ls', timeout_secs: 3 })
    expect(requests[0]).toMatchObject({ timeoutMs: 3000, outputBytesMax: 2048, policy: { network: true } })
    await expect(run({ command: 'ls', timeout_secs: 11 })).rejects.toThrow(v.ValiError)
  })

  test('does not run a command that the policy refuses', async () => {
    const { run, requests } = arrange({}, { policy: { level: 'supervised', allowed_commands: ['ls'] } })
    await expect(run({ command: 'rm x' })).rejects.toMatchObject({
      code: 'forbidden',
      message: expect.stringContaining('allowed_commands'),
    })
    expect(requests).toEqual([])
  })

  test.each<[Partial<SpawnResult>, string]>([
    [{ stdout: 'out\n' }, 'out\n[exit code 0]'],
    [{}, '[exit code 0]'],
    [{ stdout: 'out\n', stderr: 'err\n', exitCode: 2 }, 'out\n[stderr]\nerr\n[exit code 2]'],
    [{ exitCode: null, signal: 'SIGSEGV' }, '[ended by SIGSEGV]'],
    [
      { stdout: 'out\n', truncated: true, exitCode: 1 },
      'out\n[a part of the output was dropped: to keep all of it, write it to a file]\n[exit code 1]',
    ],
    [{ stdout: 'out\n', sandbox: 'none' }, 'out\n[ran without a sandbox]\n[exit code 0]'],
    [
      { stdout: 'some', exitCode: null, signal: 'SIGTERM', timedOut: true },
      'some\n[timed out after 60 s; it and what it had started were ended]',
    ],
  ])('returns the result %j as text', async (result, text) => {
    expect(await arrange(result).run({ command: 'ls' })).toBe(text)
  })

  test.each<[Partial<SpawnResult>, ToolReport]>([
    [{ stdout: '{"n":1}\n', stderr: 'err\n' }, { data: '{"n":1}' }],
    [
      { stdout: 'out\n', exitCode: 1 },
      { data: 'out', failed: true },
    ],
    [
      { exitCode: null, signal: 'SIGTERM', timedOut: true },
      { data: '', failed: true },
    ],
  ])('reports the output of %j and whether the command failed', async (result, reported) => {
    const { run, reports } = arrange(result)
    await run({ command: 'ls' })
    expect(reports).toEqual([reported])
  })

  test('throws aborted when the turn is aborted during the command', async () => {
    const { run, abort } = arrange({ exitCode: null, signal: 'SIGTERM' })
    abort.abort()
    await expect(run({ command: 'ls' })).rejects.toMatchObject({ code: 'aborted' })
  })

  test('rates a command that only reads as read, any other as execute', () => {
    const { risk } = arrange()
    expect([risk('ls -l | wc'), risk('make')]).toEqual(['read', 'execute'])
  })

  test('only an operator decides a command that runs without a sandbox, unless it only reads', () => {
    let confines = false
    const { decider } = arrange({}, { confines: () => confines })
    expect([decider('python3 x.py'), decider('ls -l | wc')]).toEqual(['operator', 'asker'])
    confines = true
    expect(decider('python3 x.py')).toBe('asker')
  })

  test('is judged once the sandbox is chosen', async () => {
    const chosen = Promise.withResolvers<void>()
    const { precheck } = arrange({}, { sandboxChosen: () => chosen.promise })
    const checked = precheck('python3 x.py')
    expect(await Promise.race([checked, 'waits'])).toBe('waits')
    chosen.resolve()
    expect(await checked).toBeUndefined()
  })

  test('refuses configuration values out of bounds', () => {
    for (const config of [{ timeout_secs: 0 }, { timeout_secs: 3601 }, { output_bytes_max: 10 }, { env_passthrough: ['A=B'] }]) {
      expect(v.safeParse(shellSection.schema, config).success).toBe(false)
    }
  })
})

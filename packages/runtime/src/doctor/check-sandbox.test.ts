import { AppError, type Sandbox, type Spawn, type SpawnRequest } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import type { SandboxChoice } from '../sandbox/select-sandbox.ts'
import { checkInWorkspace, checkSandbox } from './check-sandbox.ts'

const choice = (part: Partial<SandboxChoice> = {}, name = 'jail'): SandboxChoice => ({
  sandbox: { name } as Sandbox,
  probes: [],
  isFinal: true,
  ...part,
})
const probe = (available: boolean, detail: string) => ({ name: 'jail', available, detail })
const AUTO = { enabled: true, backend: 'auto', required: false } as const

describe('checkSandbox', () => {
  test('passes a working sandbox with its measurement', () => {
    expect(checkSandbox(choice({ probes: [probe(true, 'version 1')] }), AUTO)).toMatchObject({
      status: 'ok',
      detail: 'jail works: version 1',
    })
  })

  test('lists every backend that auto has probed', () => {
    const tried = choice({ probes: [probe(false, 'not installed')], warning: 'commands run without a sandbox: no backend works' })
    const detail = 'commands run without a sandbox: no backend works\njail does not work: not installed'
    expect(checkSandbox(tried, AUTO)).toMatchObject({ status: 'warn', detail, fix: expect.stringContaining('install') })
  })

  test('gives the reason of a named backend once', () => {
    const warning = "commands are refused, since a sandbox is required and 'jail' does not work on this machine: not installed"
    const tried = choice({ probes: [probe(false, 'not installed')], warning }, 'unavailable')
    expect(checkSandbox(tried, { ...AUTO, backend: 'jail', required: true })).toMatchObject({ status: 'fail', detail: warning })
  })

  test('warns of a stand-in for the named backend, and fails while commands are refused', () => {
    const warning = "commands run in 'jail': 'container' does not work on this machine: docker does not answer"
    expect(checkSandbox(choice({ warning }), { ...AUTO, backend: 'container' })).toMatchObject({ status: 'warn', detail: warning })
    const refusal = "commands are refused: 'jail' (slow) is on this machine and does not work yet"
    const refused = choice({ warning: refusal, probes: [probe(false, 'slow')] }, 'unavailable')
    expect(checkSandbox(refused, AUTO)).toMatchObject({ status: 'fail', detail: refusal })
  })

  test.each([{ enabled: false }, { backend: 'none' as const }])(
    '%j: warns that the sandbox is switched off, and how to switch it on',
    (off) => {
      expect(checkSandbox(choice(), { ...AUTO, ...off })).toMatchObject({ status: 'warn', fix: expect.stringContaining('enabled = true') })
      const refused = choice({ warning: 'commands are refused' }, 'unavailable')
      expect(checkSandbox(refused, { ...AUTO, ...off, required: true })).toMatchObject({
        status: 'fail',
        detail: 'commands are refused',
        fix: expect.stringContaining('enabled = true'),
      })
    },
  )
})

test('checkInWorkspace fails where no command runs, with the reason', async () => {
  const asked: SpawnRequest[] = []
  const ends =
    (exitCode: number): Spawn =>
    async (request) => {
      asked.push(request)
      return { exitCode, signal: null, timedOut: false, stdout: '', stderr: 'no such mount\nmore', truncated: false, sandbox: 'jail' }
    }
  const root = import.meta.dirname
  expect(await checkInWorkspace(ends(0), root)).toEqual([])
  expect(asked).toMatchObject([{ cwd: root, policy: { writable: [root], network: false } }])
  const refuses: Spawn = () => Promise.reject(new AppError('unavailable', 'its name has a character it refuses'))
  for (const [spawn, why] of [
    [refuses, 'a character it refuses'],
    [ends(1), 'in jail it ended with 1 (no such mount)'],
  ] as const)
    expect(await checkInWorkspace(spawn, root)).toMatchObject([{ status: 'fail', detail: expect.stringContaining(why) }])
})

test('checkInWorkspace does not make a missing workspace', async () => {
  const never: Spawn = () => Promise.reject(new Error('it was started'))
  expect(await checkInWorkspace(never, `${import.meta.dirname}/nowhere`)).toEqual([])
})

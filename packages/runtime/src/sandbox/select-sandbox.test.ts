import type { Sandbox } from '@sluice/sdk'
import { runBare } from '@sluice/testkit/run-bare'
import { describe, expect, test } from 'vitest'
import { noSandbox } from './no-sandbox.ts'
import { probeOthers, type SelectSandboxOptions, selectSandbox } from './select-sandbox.ts'

const fake = (name: string, strength: number, available: boolean | Error, isInstalled = false): Sandbox => ({
  ...noSandbox,
  name,
  strength,
  probe: async () => {
    if (available instanceof Error) throw available
    return { available, detail: available ? 'works' : `${name} says no`, ...(isInstalled && { isInstalled }) }
  },
})
const select = async (changes: Partial<SelectSandboxOptions>) => {
  const signal = new AbortController().signal
  const choice = await selectSandbox({
    backend: 'auto',
    required: false,
    enabled: true,
    sandboxes: [],
    run: runBare,
    prove: async () => undefined,
    signal,
    ...changes,
  })
  return { ...choice, name: choice.sandbox.name }
}
const run = { file: 'true', args: [], cwd: '/', env: {} }
const policy = { writable: [], network: false }

describe('selectSandbox', () => {
  test('auto takes the strongest backend whose probe passes, and lists the probes', async () => {
    const sandboxes = [fake('weak', 1, true), fake('strong', 9, false), fake('middle', 5, true), fake('odd', 7, new Error('boom'))]
    const { name, probes, warning, isFinal } = await select({ sandboxes })
    expect(name).toBe('middle')
    expect(probes).toEqual([
      { name: 'strong', available: false, detail: 'strong says no' },
      { name: 'odd', available: false, isInstalled: true, detail: 'the probe failed: boom' },
      { name: 'middle', available: true, detail: 'works' },
    ])
    expect([warning, isFinal]).toEqual([undefined, true])
  })

  test('probes only the named backend where it works', async () => {
    const sandboxes = [fake('strong', 9, true), fake('weak', 1, true)]
    expect(await select({ backend: 'weak', sandboxes })).toMatchObject({ name: 'weak', probes: [{ name: 'weak' }], isFinal: true })
  })

  test('takes the strongest working backend while the named one is unavailable', async () => {
    const sandboxes = [fake('weak', 1, true), fake('named', 2, false, true), fake('strong', 9, false), fake('middle', 5, true)]
    expect(await select({ backend: 'named', sandboxes })).toMatchObject({
      name: 'middle',
      isFinal: false,
      warning: "commands run in 'middle': 'named' does not work on this machine: named says no",
      probes: [{ name: 'named' }, { name: 'strong' }, { name: 'middle' }],
    })
  })

  test('falls back to none with a warning where no backend works', async () => {
    const broken = await select({ backend: 'jail', sandboxes: [fake('jail', 3, false, true), fake('strong', 9, false)] })
    expect(broken).toMatchObject({
      name: 'none',
      isFinal: false,
      warning: "commands run without a sandbox: 'jail' does not work on this machine: jail says no",
    })
    expect(await broken.sandbox.wrap(run, policy)).toBe(run)
  })

  test('names the build command of a backend that is not in the build', async () => {
    expect(await select({ backend: 'userns' })).toMatchObject({
      name: 'none',
      warning: expect.stringContaining('--features sandbox-userns'),
    })
  })

  test('auto runs commands without a sandbox on a machine without a backend', async () => {
    for (const sandboxes of [[], [fake('weak', 1, false)]])
      expect(await select({ sandboxes })).toMatchObject({ name: 'none', warning: expect.stringMatching(/^commands run without/) })
  })

  test('auto refuses commands while an installed backend does not work yet', async () => {
    const { sandbox, warning, isFinal } = await select({ sandboxes: [fake('absent', 9, false), fake('broken', 1, false, true)] })
    expect(() => sandbox.wrap(run, policy)).toThrow(expect.objectContaining({ code: 'unavailable', message: warning }))
    expect(warning).toMatch(/^commands are refused: 'broken' \(broken says no\) .*backend = "none"/)
    expect(isFinal).toBe(false)
  })

  test('never advises to go without a sandbox because the disk is full', async () => {
    const full = new Error("ENOSPC: no space left on device, mkdtemp '/tmp/x'")
    const { warning, isFinal } = await select({ sandboxes: [{ ...fake('strong', 9, true), probe: () => Promise.reject(full) }] })
    expect(warning).toMatch(/^commands are refused: 'strong' .* cannot be tried because the disk is full/)
    expect(warning).not.toContain('none')
    expect(isFinal).toBe(false)
  })

  test('refuses every command where a sandbox is required and none works', async () => {
    for (const changes of [{}, { backend: 'none' }, { enabled: false }, { backend: 'jail', sandboxes: [fake('jail', 3, false)] }]) {
      const { sandbox, warning } = await select({ ...changes, required: true })
      expect(() => sandbox.wrap(run, policy)).toThrow(expect.objectContaining({ code: 'unavailable', message: warning }))
    }
  })

  test('never replaces a named backend by another one while a sandbox is required', async () => {
    const named = fake('container', 2, false, true)
    for (const sandboxes of [[named, fake('strong', 9, true)], [fake('strong', 9, true)]]) {
      const { sandbox, warning, isFinal } = await select({ backend: 'container', required: true, sandboxes })
      expect(() => sandbox.wrap(run, policy)).toThrow(expect.objectContaining({ code: 'unavailable', message: warning }))
      expect(warning).toMatch(/^commands are refused: a sandbox is required and 'container' .*backend = "auto"/)
      expect(isFinal).toBe(false)
    }
  })

  test('gives no warning where the configuration switches the sandbox off', async () => {
    for (const changes of [{ backend: 'none' }, { enabled: false }]) {
      expect(await select({ ...changes, sandboxes: [fake('strong', 9, true)] })).toEqual({
        name: 'none',
        sandbox: noSandbox,
        probes: [],
        isFinal: true,
      })
    }
  })

  test.each(['auto', 'hanging'])('%s: refuses commands when a probe hangs', async (backend) => {
    const hanging: Sandbox = { ...fake('hanging', 9, true), probe: () => new Promise(() => {}) }
    const abort = new AbortController()
    const choice = select({ backend, sandboxes: [hanging], signal: abort.signal })
    abort.abort()
    expect(await choice).toMatchObject({
      name: 'unavailable',
      isFinal: false,
      probes: [{ name: 'hanging', available: false, isUnknown: true }],
    })
  })

  test('rejects a backend that passes its probe but fails the proof', async () => {
    const sandboxes = [fake('leaky', 9, true), fake('tight', 5, true)]
    const { name, probes } = await select({
      sandboxes,
      prove: async ({ name }) => (name === 'leaky' ? 'a file outside was read' : undefined),
    })
    expect(name).toBe('tight')
    expect(probes[0]).toEqual({
      name: 'leaky',
      available: false,
      isInstalled: true,
      detail: 'works: it was tried, and a file outside was read',
    })
  })
})

test('probeOthers probes the backends that the choice has not tried', async () => {
  const sandboxes = [fake('strong', 9, true), fake('weak', 1, true), fake('missing', 2, false)]
  const options = { backend: 'auto', required: false, enabled: true, sandboxes, run: runBare, signal: new AbortController().signal }
  const choice = await selectSandbox({ ...options, prove: async () => undefined })
  const leaking = { ...options, prove: async () => 'wrote outside' }
  expect(await probeOthers(leaking, choice)).toEqual([
    { name: 'weak', available: false, isInstalled: true, detail: 'works: it was tried, and wrote outside' },
    { name: 'missing', available: false, detail: 'missing says no' },
  ])
})

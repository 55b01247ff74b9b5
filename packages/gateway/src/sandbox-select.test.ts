import type { Sandbox } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { runBare } from '@sluice/testkit/run-bare'
import { expect, test } from 'vitest'
import { noSandbox } from './sandbox-none.ts'
import { probeOthers, type SelectSandboxOptions, selectSandbox } from './sandbox-select.ts'

const fake = (name: string, strength: number, available: boolean | Error): Sandbox => ({
  ...noSandbox,
  name,
  strength,
  probe: async () => {
    if (available instanceof Error) throw available
    return { available, detail: available ? 'works' : `${name} says no` }
  },
})
const select = async (changes: Partial<SelectSandboxOptions>) => {
  const { log, logs } = testHost()
  const signal = new AbortController().signal
  const choice = await selectSandbox({
    backend: 'auto',
    required: false,
    enabled: true,
    sandboxes: [],
    run: runBare,
    prove: async () => undefined,
    log,
    signal,
    ...changes,
  })
  return { ...choice, name: choice.sandbox.name, warnings: logs.filter(({ level }) => level === 'warn').map(({ message }) => message) }
}
const run = { file: 'true', args: [], cwd: '/', env: {} }
const policy = { writable: [], network: false }

test('auto takes the strongest whose probe passes, and says what it found before', async () => {
  const sandboxes = [fake('weak', 1, true), fake('strong', 9, false), fake('middle', 5, true), fake('odd', 7, new Error('boom'))]
  const { name, probes, warnings, warning } = await select({ sandboxes })
  expect(name).toBe('middle')
  expect(probes).toEqual([
    { name: 'strong', available: false, detail: 'strong says no' },
    { name: 'odd', available: false, detail: 'the probe failed: boom' },
    { name: 'middle', available: true, detail: 'works' },
  ])
  expect([warnings, warning]).toEqual([[], undefined])
})

test('those the choice has left out are probed when they are asked for, by the same rule', async () => {
  const sandboxes = [fake('strong', 9, true), fake('weak', 1, true), fake('missing', 2, false)]
  const { log } = testHost()
  const options = { backend: 'auto', required: false, enabled: true, sandboxes, run: runBare, log, signal: new AbortController().signal }
  const choice = await selectSandbox({ ...options, prove: async () => undefined })
  const leaking = { ...options, prove: async () => 'wrote outside' }
  expect(await probeOthers(leaking, choice)).toEqual([
    { name: 'weak', available: false, detail: 'works: it was tried, and wrote outside' },
    { name: 'missing', available: false, detail: 'missing says no' },
  ])
})

test('a named backend is the only one tried', async () => {
  const sandboxes = [fake('strong', 9, true), fake('weak', 1, true)]
  expect(await select({ backend: 'weak', sandboxes })).toMatchObject({ name: 'weak', probes: [{ name: 'weak' }] })
})

test('§2.7 rule 11: an unavailable backend falls back to none with one warning', async () => {
  const broken = await select({ backend: 'jail', sandboxes: [fake('jail', 3, false), fake('strong', 9, true)] })
  expect(broken.name).toBe('none')
  expect(broken.warnings).toEqual(["commands run without a sandbox: 'jail' does not work on this machine: jail says no"])
  expect(broken.warning).toBe(broken.warnings[0])
  expect(await broken.sandbox.wrap(run, policy)).toBe(run)
})

test('a backend that is not in the build is named with how to add it', async () => {
  const { name, warnings } = await select({ backend: 'userns' })
  expect(name).toBe('none')
  expect(warnings).toEqual([expect.stringContaining('--features sandbox-userns')])
})

test('auto with nothing that works warns once', async () => {
  expect((await select({})).warnings).toHaveLength(1)
  expect((await select({ sandboxes: [fake('weak', 1, false)] })).warnings).toHaveLength(1)
})

test('a required sandbox that is missing refuses every command', async () => {
  for (const changes of [{}, { backend: 'none' }, { enabled: false }, { backend: 'jail', sandboxes: [fake('jail', 3, false)] }]) {
    const { sandbox, warnings } = await select({ ...changes, required: true })
    expect(() => sandbox.wrap(run, policy)).toThrow(expect.objectContaining({ code: 'unavailable' }))
    expect(warnings).toHaveLength(1)
  }
})

test('switched off by choice is silent', async () => {
  for (const changes of [{ backend: 'none' }, { enabled: false }]) {
    expect(await select({ ...changes, sandboxes: [fake('strong', 9, true)] })).toMatchObject({ name: 'none', warnings: [], probes: [] })
  }
})

test('a probe that hangs counts as failed once the choice is aborted', async () => {
  const hanging: Sandbox = { ...fake('hanging', 9, true), probe: () => new Promise(() => {}) }
  const abort = new AbortController()
  const choice = select({ sandboxes: [hanging], signal: abort.signal })
  abort.abort()
  expect(await choice).toMatchObject({ name: 'none', probes: [{ name: 'hanging', available: false }] })
})

test('a backend whose probe passes but that lets something out is not taken', async () => {
  const sandboxes = [fake('leaky', 9, true), fake('tight', 5, true)]
  const { name, probes } = await select({
    sandboxes,
    prove: async ({ name }) => (name === 'leaky' ? 'a file outside was read' : undefined),
  })
  expect(name).toBe('tight')
  expect(probes[0]).toEqual({ name: 'leaky', available: false, detail: 'works: it was tried, and a file outside was read' })
})

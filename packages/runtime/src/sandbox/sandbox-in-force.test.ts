import type { Sandbox } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { runBare } from '@sluice/testkit/run-bare'
import { describe, expect, test } from 'vitest'
import { noSandbox } from './no-sandbox.ts'
import { SandboxInForce } from './sandbox-in-force.ts'

/** A backend that can be switched on and off. */
function fake(name: string, strength: number) {
  const state = { available: false, probes: 0 }
  const sandbox: Sandbox = {
    ...noSandbox,
    name,
    strength,
    async probe() {
      state.probes++
      return { available: state.available, detail: state.available ? 'works' : 'its engine is down', isInstalled: true }
    },
  }
  return { sandbox, state }
}

function inForceOf(backend: string, ...fakes: ReturnType<typeof fake>[]) {
  const { log, logs } = testHost()
  const inForce = new SandboxInForce(
    () => ({
      backend,
      required: false,
      enabled: true,
      sandboxes: fakes.map(({ sandbox }) => sandbox),
      run: runBare,
      prove: async () => undefined,
      signal: new AbortController().signal,
    }),
    log,
  )
  const warnings = () => logs.filter(({ level }) => level === 'warn').map(({ message }) => message)
  const name = async () => (await inForce.choice()).sandbox.name
  return { inForce, warnings, name }
}

describe('SandboxInForce', () => {
  test('makes a choice that failed again', async () => {
    let calls = 0
    const inForce = new SandboxInForce(() => {
      if (++calls === 1) throw new Error('too early')
      return {
        backend: 'auto',
        required: false,
        enabled: false,
        sandboxes: [],
        run: runBare,
        prove: async () => undefined,
        signal: new AbortController().signal,
      }
    }, testHost().log)
    await expect(inForce.choice()).rejects.toThrow('too early')
    expect((await inForce.choice()).sandbox.name).toBe('none')
  })

  test.each(['auto', 'container'])('%s: takes a backend that becomes available before a retry', async (backend) => {
    const container = fake('container', 1)
    const { inForce, name } = inForceOf(backend, container)
    expect(await name()).toBe(backend === 'auto' ? 'unavailable' : 'none')
    container.state.available = true
    await inForce.retry()
    expect(await name()).toBe('container')
    expect(inForce.latest()).toMatchObject({ sandbox: { name: 'container' }, isFinal: true })
  })

  test('replaces the stand-in once the named backend works', async () => {
    const [named, other] = [fake('named', 1), fake('other', 9)]
    other.state.available = true
    const { inForce, name } = inForceOf('named', named, other)
    expect(await name()).toBe('other')
    named.state.available = true
    await inForce.retry()
    expect(await name()).toBe('named')
  })

  test('reports a backend that stays unavailable once', async () => {
    const { inForce, warnings } = inForceOf('container', fake('container', 1))
    await inForce.choice()
    await inForce.retry()
    await inForce.retry()
    expect(warnings()).toEqual([expect.stringMatching(/^commands run without a sandbox: .*its engine is down$/)])
  })

  test('makes no choice before the first use, and keeps a final one', async () => {
    const jail = fake('jail', 1)
    jail.state.available = true
    const { inForce, name } = inForceOf('auto', jail)
    await inForce.retry()
    expect(jail.state.probes).toBe(0)
    await Promise.all([name(), name()])
    await inForce.retry()
    expect(jail.state.probes).toBe(1)
  })

  test('keeps the sandbox in force while it chooses again', async () => {
    const [named, other] = [fake('named', 1), fake('other', 9)]
    other.state.available = true
    const { inForce, name } = inForceOf('named', named, other)
    await inForce.choice()
    named.state.available = true
    const retried = inForce.retry()
    expect(await name()).toBe('other')
    await retried
    expect(await name()).toBe('named')
  })
})

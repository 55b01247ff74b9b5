import type { Sandbox } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { runBare } from '@sluice/testkit/run-bare'
import { expect, test } from 'vitest'
import { noSandbox } from './no-sandbox.ts'
import { createSandboxInForce } from './sandbox-in-force.ts'

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
  const inForce = createSandboxInForce(
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
  const name = async () => (await inForce.sandbox()).sandbox.name
  return { inForce, warnings, name }
}

test.each(['auto', 'container'])('%s: a backend that comes up later is taken when it is tried again', async (backend) => {
  const container = fake('container', 1)
  const { inForce, name } = inForceOf(backend, container)
  expect(await name()).toBe(backend === 'auto' ? 'unavailable' : 'none')
  container.state.available = true
  await inForce.retrySandbox()
  expect(await name()).toBe('container')
  expect(inForce.chosenSandbox()).toMatchObject({ sandbox: { name: 'container' }, isFinal: true })
})

test('a named backend takes over from the one that stood in for it', async () => {
  const [named, other] = [fake('named', 1), fake('other', 9)]
  other.state.available = true
  const { inForce, name } = inForceOf('named', named, other)
  expect(await name()).toBe('other')
  named.state.available = true
  await inForce.retrySandbox()
  expect(await name()).toBe('named')
})

test('a backend that stays away is reported once', async () => {
  const { inForce, warnings } = inForceOf('container', fake('container', 1))
  await inForce.sandbox()
  await inForce.retrySandbox()
  await inForce.retrySandbox()
  expect(warnings()).toEqual([expect.stringMatching(/^commands run without a sandbox: .*its engine is down$/)])
})

test('a choice that is what the configuration asks for is not made again, and no choice is made before the first use', async () => {
  const jail = fake('jail', 1)
  jail.state.available = true
  const { inForce, name } = inForceOf('auto', jail)
  await inForce.retrySandbox()
  expect(jail.state.probes).toBe(0)
  await Promise.all([name(), name()])
  await inForce.retrySandbox()
  expect(jail.state.probes).toBe(1)
})

test('commands go on in the sandbox in force while it is chosen again', async () => {
  const [named, other] = [fake('named', 1), fake('other', 9)]
  other.state.available = true
  const { inForce, name } = inForceOf('named', named, other)
  await inForce.sandbox()
  named.state.available = true
  const retried = inForce.retrySandbox()
  expect(await name()).toBe('other')
  await retried
  expect(await name()).toBe('named')
})

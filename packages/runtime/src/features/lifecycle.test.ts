/** The rules of docs/contract.md#features, each shown with features that record their life cycle. */

import type { LoadedConfig } from '@sluice/config'
import { CORE_SECTIONS } from '@sluice/config'
import { PerClient } from '@sluice/kit'
import { type Channel, type ClientId, defineFeature, defineTool, type Feature, type Host, type Section, type Tool } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { createTraceScope } from '../fetch/outbound-fetch.ts'
import type { SandboxInForce } from '../sandbox/sandbox-in-force.ts'
import { createAgents } from './agents.ts'
import { Lifecycle, type LifecycleOptions } from './lifecycle.ts'

interface Sections {
  readonly [path: string]: Record<string, unknown>
}

/** A configuration of plain values, by the path of their section. */
const configOf = (values: Sections, features: readonly Feature[]): LoadedConfig => {
  const parse = (section: Section) => v.parse(section.schema, values[section.path] ?? {}) as never
  return {
    file: 'test.toml',
    core: (section) => parse(section as unknown as Section),
    of(id) {
      const section = features.find((feature) => feature.id === id)?.section
      return { state: section && values[section.path] ? 'configured' : 'defaults', value: section ? parse(section) : {} }
    },
    hasCore: () => false,
    hash: (_owner, path) => JSON.stringify(values[path] ?? {}),
    source: () => ({ kind: 'file' }),
    leftOut: [],
    warnings: [],
    plainSecrets: [],
  }
}

const tool = (name: string, run: Tool['run'] = async () => 'done') =>
  defineTool({ name, description: name, input: v.object({}), risk: 'read', egress: false, untrusted: false, run })

const section = (path: string) => ({ path, schema: v.object({ token: v.optional(v.string(), '') }) })

/** No test here runs a command. */
const sandbox = {} as SandboxInForce

interface Recorded {
  readonly feature: Feature
  readonly log: string[]
}

/** A feature that records each phase of its life cycle. */
function recorded(
  id: `x-${string}`,
  options: { tools?: boolean; register?: () => Promise<void>; log?: string[]; run?: Tool['run'] } = {},
): Recorded {
  const log = options.log ?? []
  let built = 0
  const feature = defineFeature({
    id,
    section: section(id),
    build(_host: Host, config) {
      const number = ++built
      log.push(`${id} build ${number}${config.token ? ` ${config.token}` : ''}`)
      return {
        ...(options.tools === false ? {} : { tools: [tool(`${id.replace('-', '_')}_tool`, options.run)] }),
        register: async () => {
          log.push(`${id} register ${number}`)
          await options.register?.()
        },
        close: async () => void log.push(`${id} close ${number}`),
      }
    },
  })
  return { feature, log }
}

function lifecycleOf(features: readonly Feature[], host = testHost(), guards?: LifecycleOptions['guards']) {
  const log: LifecycleOptions['log'] = { ...host.log, child: () => log, setLevel: () => {} }
  const options: LifecycleOptions = {
    features,
    env: {},
    log,
    host: {
      clock: host.clock,
      log,
      store: { keyValue: () => host.keyValue } as never,
      secrets: {} as never,
      events: host.events,
      dataDir: '/nowhere',
      traces: createTraceScope(() => false),
      fetch: host.fetch,
    },
    guards:
      guards ??
      (() => ({
        sandbox,
        workspaces: host.workspaces,
        workspace: host.workspace,
        spawn: host.spawn,
        confines: host.confines,
        sandboxChosen: host.sandboxChosen,
        publicFetch: host.publicFetch,
        publicAddresses: host.publicAddresses,
      })),
    agents: (config) => createAgents(config, { dataDir: '/nowhere', configFile: '/nowhere/config.toml' }),
    service: () => undefined,
  }
  return new Lifecycle(options)
}

const offline = defineFeature({
  id: 'provider-offline',
  build: () => ({ providers: [{ kinds: ['offline'], load: async () => ({ provider: 'offline' }) as never }] }),
})

const compiledTools = (lifecycle: Lifecycle) =>
  lifecycle.snapshot().tools.flatMap(({ name, feature, compiled }) => (compiled ? [[name, feature]] : []))

describe('Lifecycle', () => {
  test('builds all, registers all once, and closes in reverse order', async () => {
    const log: string[] = []
    const features = [offline, recorded('x-a', { log }).feature, recorded('x-b', { log }).feature]
    const lifecycle = lifecycleOf(features)
    await lifecycle.apply(configOf({}, features))
    expect(log).toEqual(['x-a build 1', 'x-b build 1', 'x-a register 1', 'x-b register 1'])
    for (let turn = 0; turn < 3; turn++) lifecycle.pin('main').release()
    expect(log).toHaveLength(4)
    await lifecycle.close()
    await lifecycle.close()
    expect(log.slice(4)).toEqual(['x-b close 1', 'x-a close 1'])
  })

  test('drains a replaced feature before its replacement registers, while turns may still use it', async () => {
    const { feature, log } = recorded('x-a')
    const moving = { ...feature, build: (...given: Parameters<Feature['build']>) => ({ ...feature.build(...given), drain }) }
    const drain = async () => {
      log.push('drain')
      throw new Error('it did so badly')
    }
    const features = [offline, moving]
    const lifecycle = lifecycleOf(features)
    await lifecycle.apply(configOf({}, features))
    const turn = lifecycle.pin('main')
    await lifecycle.apply(configOf({ 'x-a': { token: 'new' } }, features))
    expect(log.splice(0)).toEqual(['x-a build 1', 'x-a register 1', 'x-a build 2 new', 'drain', 'x-a register 2'])
    turn.release()
    await lifecycle.drain()
    await lifecycle.drain()
    await lifecycle.close()
    expect(log).toEqual(['x-a close 1', 'drain', 'x-a close 2'])
  })

  test('offers a tool that became available to turns after a refresh, not to earlier ones', async () => {
    let isThere = false
    const plugged = { ...tool('x_plugged_tool'), available: () => isThere }
    const feature = defineFeature({ id: 'x-plugged', build: () => ({ tools: [plugged] }) })
    const features = [offline, feature]
    const lifecycle = lifecycleOf(features)
    await lifecycle.apply(configOf({}, features))
    const turn = lifecycle.pin('main')
    isThere = true
    await lifecycle.refresh('x-plugged', 'it was plugged in')
    const offered = ({ registry }: typeof turn) => registry.offered.map(({ name }) => name)
    const next = lifecycle.pin('main')
    expect([offered(turn), offered(next)]).toEqual([[], ['x_plugged_tool']])
    for (const pin of [turn, next]) pin.release()
    await lifecycle.close()
    await lifecycle.refresh('x-plugged', 'too late')
  })

  test('marks a feature that cannot register failed; its tools give the reason', async () => {
    const broken = recorded('x-broken', { register: () => Promise.reject(new Error('the key was refused')) })
    const features = [offline, broken.feature, recorded('x-fine').feature]
    const lifecycle = lifecycleOf(features)
    await lifecycle.apply(configOf({}, features))
    const rows = lifecycle.snapshot().features
    expect(rows.find(({ feature }) => feature === 'x-broken')).toMatchObject({ state: 'failed', reason: 'the key was refused' })
    expect(lifecycle.pin('main').registry.offered.map(({ name }) => name)).toEqual(['x_fine_tool'])
  })

  test('keeps only the commands of a feature that disables itself', async () => {
    const command = { name: 'plugin list', summary: 'x', run: async () => 0 }
    const off = defineFeature({
      id: 'plugins-wasm',
      build: () => ({ disabledReason: '`enabled` is false', commands: [command], tools: [tool('x_off')] }),
    })
    const lifecycle = lifecycleOf([offline, off])
    await lifecycle.apply(configOf({}, [offline, off]))
    expect(lifecycle.snapshot().instances.flatMap(({ parts }) => parts.commands ?? [])).toEqual([command])
    expect(compiledTools(lifecycle)).toEqual([])
  })

  test('drops a tool of a plugin whose name another feature uses', async () => {
    let found: Tool[] = []
    const plugins = defineFeature({
      id: 'plugins-wasm',
      build: () => ({
        get tools() {
          return found
        },
        async register() {
          found = [tool('x_a_tool'), tool('own'), tool('own')]
        },
      }),
    })
    const features = [plugins, offline, recorded('x-a').feature]
    const lifecycle = lifecycleOf(features)
    await lifecycle.apply(configOf({}, features))
    expect(compiledTools(lifecycle)).toEqual([
      ['own', 'plugins-wasm'],
      ['x_a_tool', 'x-a'],
    ])
    expect(lifecycle.pin('main').registry.offered.map(({ name }) => name)).toEqual(['own', 'x_a_tool'])
  })

  test('answers routes of an unconfigured feature with not_found and the reason', async () => {
    const off = defineFeature({
      id: 'channel-roomchat',
      build: () => ({ disabledReason: '`enabled` is false', channels: [{ name: 'roomchat' } as Channel] }),
    })
    const lifecycle = lifecycleOf([offline, off])
    await lifecycle.apply(configOf({}, [offline, off]))
    const { features, channels, stubs } = lifecycle.snapshot()
    expect(features.find(({ feature }) => feature === 'channel-roomchat')).toMatchObject({
      state: 'unconfigured',
      reason: '`enabled` is false',
    })
    expect(channels).toEqual([])
    expect(stubs).toContainEqual(expect.objectContaining({ method: 'POST', path: '/roomchat', code: 'not_found' }))
  })

  test('marks a feature whose build throws failed, and keeps the others', async () => {
    const throwing = defineFeature({
      id: 'x-throwing',
      build: () => {
        throw new Error('no')
      },
    })
    const features = [offline, throwing, recorded('x-fine').feature]
    const lifecycle = lifecycleOf(features)
    await lifecycle.apply(configOf({}, features))
    expect(lifecycle.snapshot().features.find(({ feature }) => feature === 'x-throwing')).toMatchObject({
      state: 'failed',
      reason: 'no',
    })
    expect(lifecycle.pin('main').registry.offered).toHaveLength(1)
  })

  test('freezes the snapshot', async () => {
    const lifecycle = lifecycleOf([offline])
    await lifecycle.apply(configOf({}, [offline]))
    const snapshot = lifecycle.snapshot()
    for (const part of [snapshot, snapshot.registry]) expect(Object.isFrozen(part)).toBe(true)
  })

  test('lists a left-out tool with its build command for people, and not for the model', async () => {
    const lifecycle = lifecycleOf([offline])
    await lifecycle.apply(configOf({}, [offline]))
    const { tools, registry } = lifecycle.snapshot()
    expect(tools).toContainEqual({
      name: 'hardware_memory_read',
      description: expect.stringContaining('Not in this build'),
      feature: 'hardware-probe',
      available: false,
      compiled: false,
      build: 'npm run build -- full --features probe',
    })
    expect(registry.prompt()).toBe('')
    expect(registry.offered).toEqual([])
  })

  test('offers no left-out tool to the model, also when its feature is configured', async () => {
    const lifecycle = lifecycleOf([offline])
    const leftOut = [{ section: 'peripherals', feature: 'hardware-probe', build: '' }] as const
    await lifecycle.apply({ ...configOf({}, [offline]), leftOut })
    const { registry } = lifecycle.pin('main')
    expect(registry.offered).toEqual([])
    expect(registry.tools.has('hardware_memory_read')).toBe(true)
  })

  test('prefers a tool of the build to a left-out one of the same name', async () => {
    const own = defineFeature({ id: 'x-own', build: () => ({ tools: [tool('pdf_read')] }) })
    const lifecycle = lifecycleOf([offline, own])
    await lifecycle.apply(configOf({}, [offline, own]))
    const { tools, registry } = lifecycle.snapshot()
    expect(tools.filter(({ name }) => name === 'pdf_read')).toMatchObject([{ feature: 'x-own', compiled: true, build: null }])
    expect(registry.prompt()).not.toContain('pdf_read')
  })

  test('answers a call of a left-out tool with the build command', async () => {
    const lifecycle = lifecycleOf([offline])
    await lifecycle.apply(configOf({}, [offline]))
    const { registry } = lifecycle.pin('main')
    expect(registry.offered).toEqual([])
    await expect(registry.tools.get('hardware_memory_read')?.run({}, {} as never)).rejects.toMatchObject({
      code: 'not_compiled',
      fields: { feature: 'hardware-probe', build: expect.stringContaining('npm run build -- full --features probe') },
    })
  })
})

describe('onSnapshot', () => {
  test('calls listeners in order of subscription, with the snapshot already in force', async () => {
    const lifecycle = lifecycleOf([offline])
    const calls: string[] = []
    lifecycle.onSnapshot((snapshot) => {
      expect(lifecycle.snapshot()).toBe(snapshot)
      calls.push(`first ${snapshot.version}`)
    })
    const unsubscribe = lifecycle.onSnapshot(({ version }) => calls.push(`second ${version}`))
    await lifecycle.apply(configOf({}, [offline]))
    unsubscribe()
    await lifecycle.refresh('provider-offline', 'its tools changed')
    expect(calls).toEqual(['first 1', 'second 1', 'first 2'])
  })

  test('logs a listener that throws, and calls the others', async () => {
    const host = testHost()
    const lifecycle = lifecycleOf([offline], host)
    const seen: number[] = []
    lifecycle.onSnapshot(() => {
      throw new Error('no room')
    })
    lifecycle.onSnapshot(({ version }) => seen.push(version))
    await lifecycle.apply(configOf({}, [offline]))
    expect(seen).toEqual([1])
    expect(host.logs).toMatchObject([{ level: 'error', message: 'snapshot listener failed' }])
  })

  test('shows a changed configuration before the replaced features close', async () => {
    const log: string[] = []
    const features = [offline, recorded('x-a', { log }).feature]
    const lifecycle = lifecycleOf(features)
    lifecycle.onSnapshot(({ version }) => log.push(`snapshot ${version}`))
    await lifecycle.apply(configOf({}, features))
    log.length = 0
    await lifecycle.apply(configOf({ 'x-a': { token: 'new' } }, features))
    expect(log).toEqual(['x-a build 2 new', 'x-a register 2', 'snapshot 2', 'x-a close 1'])
  })

  test('is not called for a configuration that cannot be applied', async () => {
    const lifecycle = lifecycleOf([offline])
    await lifecycle.apply(configOf({}, [offline]))
    const versions: number[] = []
    lifecycle.onSnapshot(({ version }) => versions.push(version))
    await expect(lifecycle.apply(configOf({ provider: { kind: 'nonsense' } }, [offline]))).rejects.toMatchObject({ code: 'config_invalid' })
    expect(versions).toEqual([])
  })
})

describe('Lifecycle on a changed configuration', () => {
  const trio = () => {
    const log: string[] = []
    const features = [
      offline,
      recorded('x-a', { log }).feature,
      recorded('x-b', { log }).feature,
      recorded('x-plain', { log, tools: false }).feature,
    ]
    return { log, features, lifecycle: lifecycleOf(features) }
  }
  const builds = (log: readonly string[]) => log.filter((line) => line.includes('build')).map((line) => line.split(' ')[0])

  test('builds exactly the feature of a changed section again', async () => {
    const { log, features, lifecycle } = trio()
    await lifecycle.apply(configOf({}, features))
    log.length = 0
    const outcome = await lifecycle.apply(configOf({ 'x-b': { token: 'new' } }, features))
    expect(outcome).toEqual({ sections: ['x-b'], rebuilt: ['x-b'] })
    expect(log).toEqual(['x-b build 2 new', 'x-b register 2', 'x-b close 1'])
  })

  test('builds no feature again if nothing changed', async () => {
    const { log, features, lifecycle } = trio()
    await lifecycle.apply(configOf({ 'x-a': { token: 't' } }, features))
    const before = lifecycle.snapshot().instances
    log.length = 0
    expect(await lifecycle.apply(configOf({ 'x-a': { token: 't' } }, features))).toEqual({ sections: [], rebuilt: [] })
    expect(log).toEqual([])
    expect(lifecycle.snapshot().instances).toEqual(before)
  })

  test.each(CORE_SECTIONS.map(({ path }) => path))('reports a change in [%s]', async (path) => {
    const { features, lifecycle } = trio()
    const first = { ...configOf({}, features), hash: () => 'before' }
    await lifecycle.apply(first)
    const { sections } = await lifecycle.apply({ ...first, hash: (_owner, asked) => (asked === path ? 'after' : 'before') })
    expect(sections).toEqual([path])
  })

  test('builds every feature with tools again for a changed policy, and no other', async () => {
    const { log, features, lifecycle } = trio()
    await lifecycle.apply(configOf({}, features))
    log.length = 0
    await lifecycle.apply(configOf({ 'security.policy': { level: 'readonly' } }, features))
    expect(builds(log)).toEqual(['x-a', 'x-b'])
  })

  test('a changed agent is in force at once and builds no feature again, except when its workspace moves', async () => {
    const { log, features, lifecycle } = trio()
    await lifecycle.apply(configOf({ agents: { support: { tools: ['x'] } } }, features))
    const turn = lifecycle.pin('support')
    log.length = 0
    await lifecycle.apply(configOf({ agents: { support: { policy: { level: 'readonly' } } } }, features))
    expect(builds(log)).toEqual([])
    expect(lifecycle.agents().get('support')).toMatchObject({ tools: undefined, policy: { level: 'readonly' } })
    await lifecycle.apply(configOf({ agents: { support: { workspace: '/elsewhere' } } }, features))
    expect(builds(log)).toEqual(['x-a', 'x-b'])
    await lifecycle.apply(configOf({}, features))
    expect([...lifecycle.agents().keys()]).toEqual(['main'])
    turn.release()
  })

  test('each agent has the models of its own provider, and an error names the agent', async () => {
    const { features, lifecycle } = trio()
    await lifecycle.apply(configOf({ agents: { support: { provider: { kind: 'offline', model: 'echo-2' } }, plain: {} } }, features))
    const models = ['main', 'support', 'plain', 'gone'].map((agent) => lifecycle.pin(agent).registry.models.labels[0]?.model)
    expect(models).toEqual(['default', 'echo-2', 'default', 'default'])
    await expect(lifecycle.apply(configOf({ agents: { support: { provider: { kind: 'none' } } } }, features))).rejects.toThrow(
      /^agents\.support\.provider: .*"none"/,
    )
    expect(lifecycle.pin('support').registry.models.labels[0]?.model).toBe('echo-2')
  })

  test('applies the sandbox and the rules for addresses in force to turns under way', async () => {
    const seen: unknown[] = []
    const feature = defineFeature({
      id: 'x-guarded',
      build: (host) => {
        const look = async () => {
          const { exitCode } = await host.spawn({} as never)
          const confines = host.confines()
          const addresses = await host.publicAddresses('x', new AbortController().signal)
          seen.push([exitCode, confines, addresses])
          return 'done'
        }
        return { tools: [tool('x_guarded_tool', look)] }
      },
    })
    const features = [offline, feature]
    let number = 0
    const guards: LifecycleOptions['guards'] = () => {
      const made = ++number
      return {
        sandbox,
        workspaces: [],
        workspace: testHost().workspace,
        spawn: async () => ({ exitCode: made }) as never,
        confines: () => made > 1,
        sandboxChosen: async () => {},
        publicFetch: testHost().publicFetch,
        publicAddresses: async () => [String(made)] as never,
      }
    }
    const lifecycle = lifecycleOf(features, testHost(), guards)
    await lifecycle.apply(configOf({}, features))
    const { registry } = lifecycle.pin('main')
    const call = async () => registry.tools.get('x_guarded_tool')?.run({}, {} as never)
    await call()
    await lifecycle.apply(configOf({ 'security.policy': { level: 'readonly' } }, features))
    await call()
    await lifecycle.apply(configOf({ 'security.policy': { level: 'supervised' }, agent: { workspace: '/second' } }, features))
    await call()
    expect(seen).toEqual([
      [1, false, ['1']],
      [2, true, ['2']],
      [3, true, ['3']],
    ])
    await lifecycle.close()
  })

  test('treats a changed workspace like a changed policy, but no other key of [agent]', async () => {
    const { log, features, lifecycle } = trio()
    await lifecycle.apply(configOf({}, features))
    log.length = 0
    await lifecycle.apply(configOf({ agent: { max_iterations: 3 } }, features))
    expect(builds(log)).toEqual([])
    await lifecycle.apply(configOf({ agent: { max_iterations: 3, workspace: '/elsewhere' } }, features))
    expect(builds(log)).toEqual(['x-a', 'x-b'])
  })

  test('replaces the models for a changed provider, and builds no feature again', async () => {
    const { log, features, lifecycle } = trio()
    await lifecycle.apply(configOf({ provider: { kind: 'offline' } }, features))
    const { models } = lifecycle.snapshot().registry
    log.length = 0
    await lifecycle.apply(configOf({ provider: { kind: 'offline', model: 'other' } }, features))
    expect(log).toEqual([])
    expect(lifecycle.snapshot().registry.models).not.toBe(models)
    const kept = lifecycle.snapshot().registry.models
    await lifecycle.apply(configOf({ provider: { kind: 'offline', model: 'other' }, agent: { max_iterations: 2 } }, features))
    expect(lifecycle.snapshot().registry.models).toBe(kept)
  })

  test('drops the per-client state of a rotated credential', async () => {
    const states: PerClient<{ authorised: boolean }>[] = []
    const feature = defineFeature({
      id: 'x-client',
      section: section('x-client'),
      build() {
        const state = new PerClient<{ authorised: boolean }>('authorisation', 10)
        states.push(state)
        return { tools: [tool('x_client_tool')] }
      },
    })
    const features = [offline, feature]
    const lifecycle = lifecycleOf(features)
    const client = 'c' as ClientId
    await lifecycle.apply(configOf({ 'x-client': { token: 'old' } }, features))
    const first = states.at(-1)
    first?.keep(client, { authorised: true })
    await lifecycle.apply(configOf({ 'x-client': { token: 'new' } }, features))
    expect(states.at(-1)).not.toBe(first)
    expect(states.at(-1)?.find(client)).toBeUndefined()
  })

  test('closes a replaced feature when the last turn that uses it has ended', async () => {
    const { log, features, lifecycle } = trio()
    await lifecycle.apply(configOf({}, features))
    const [one, two] = [lifecycle.pin('main'), lifecycle.pin('main')]
    const { version } = lifecycle.snapshot()
    log.length = 0
    await lifecycle.apply(configOf({ 'x-a': { token: 'new' } }, features))
    expect(lifecycle.snapshot().version).toBe(version + 1)
    expect(lifecycle.pin('main').registry).not.toBe(one.registry)
    expect(log).not.toContain('x-a close 1')
    one.release()
    one.release()
    expect(log).not.toContain('x-a close 1')
    two.release()
    await Promise.resolve()
    expect(log).toContain('x-a close 1')
    expect(log).not.toContain('x-b close 1')
  })

  test('keeps the configuration in force when the next cannot be applied', async () => {
    const { log, features, lifecycle } = trio()
    await lifecycle.apply(configOf({}, features))
    const before = lifecycle.snapshot()
    log.length = 0
    await expect(lifecycle.apply(configOf({ provider: { kind: 'nonsense' }, 'x-a': { token: 'new' } }, features))).rejects.toMatchObject({
      code: 'config_invalid',
    })
    expect(lifecycle.snapshot()).toBe(before)
    expect(log).toEqual(['x-a build 2 new', 'x-a close 2'])
  })

  test('keeps a feature whose rebuild would leave no usable provider', async () => {
    const log: string[] = []
    let built = 0
    const flaky = defineFeature({
      id: 'x-flaky',
      build() {
        const number = ++built
        log.push(`build ${number}`)
        const kinds = number === 1 ? ['flaky'] : ['another']
        return {
          providers: [{ kinds, load: async () => ({ provider: 'flaky' }) as never }],
          close: async () => void log.push(`close ${number}`),
        }
      },
    })
    const lifecycle = lifecycleOf([offline, flaky])
    await lifecycle.apply(configOf({ provider: { kind: 'flaky', model: 'm' } }, [offline, flaky]))
    const before = lifecycle.snapshot()
    await expect(lifecycle.rebuild('x-flaky', 'asked to')).rejects.toMatchObject({ code: 'config_invalid' })
    expect(lifecycle.snapshot()).toBe(before)
    expect(log).toEqual(['build 1', 'build 2', 'close 2'])
  })

  test('adds a feature that registers late with a snapshot of its own', async () => {
    const gate = Promise.withResolvers<void>()
    const features = [offline, recorded('x-late', { register: () => gate.promise }).feature]
    const host = testHost()
    const lifecycle = lifecycleOf(features, host)
    const stateNow = () => lifecycle.snapshot().features.find(({ feature }) => feature === 'x-late')?.state
    const applied = lifecycle.apply(configOf({}, features))
    await host.advance(1000)
    await applied
    expect(stateNow()).toBe('starting')
    expect(lifecycle.pin('main').registry.offered).toEqual([])
    gate.resolve()
    await expect.poll(() => stateNow()).toBe('ready')
    expect(lifecycle.pin('main').registry.offered).toHaveLength(1)
  })

  test('builds a feature again on its own request', async () => {
    let ask: (() => void) | undefined
    const log: string[] = []
    const feature = defineFeature({
      id: 'x-hotplug',
      build(host) {
        log.push('build')
        ask = () => host.rebuild('a board came')
        return { close: async () => void log.push('close') }
      },
    })
    const lifecycle = lifecycleOf([offline, feature])
    await lifecycle.apply(configOf({}, [offline, feature]))
    ask?.()
    await lifecycle.apply(configOf({}, [offline, feature]))
    expect(log).toEqual(['build', 'build', 'close'])
  })
})

import { cp, mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError, CATALOGUE, type CommandContext, type DeviceRecord } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import feature from './index.ts'
import { manifestFor, newFolder, newPublisher, writePlugin } from './testing/new-plugin.ts'
import { moduleOf } from './testing/wasm-text.ts'

const MODULE = moduleOf()
let root: string
const closing: (() => Promise<void>)[] = []

beforeEach(async () => {
  root = await newFolder()
})

afterEach(async () => {
  for (const close of closing.splice(0)) await close()
  await rm(root, { recursive: true, force: true })
})

const arrange = (config: object = { enabled: true }) => {
  const audited: DeviceRecord[] = []
  const host = testHost({ dataDir: root, services: { audit: async (record: DeviceRecord) => void audited.push(record) } })
  const schema = feature.section?.schema
  if (!schema) throw new Error('The feature has no section')
  const parts = feature.build(host, v.parse(schema, config))
  closing.push(async () => parts.close?.())
  const plugin = async (line: string | readonly string[], { json = false } = {}) => {
    const [name = '', ...args] = typeof line === 'string' ? line.split(' ') : line
    const printed: string[] = []
    const warned: string[] = []
    const context: CommandContext = {
      args,
      cwd: root,
      by: 'cli:ada',
      json,
      addToConfig: async () => {},
      setInConfig: async () => {},
      print: (text) => void printed.push(text),
      warn: (text) => void warned.push(text),
      signal: new AbortController().signal,
    }
    const exit = await parts.commands?.find((command) => command.name === `plugin ${name}`)?.run(context)
    return { exit, printed, warned }
  }
  return { host, audited, parts, plugin, register: async () => parts.register?.(new AbortController().signal) }
}

const written = (changes: Record<string, unknown> = {}) =>
  writePlugin(join(root, 'source', String(changes.name ?? 'echo')), manifestFor(MODULE, changes), MODULE)
const TURNED_OFF = 'Plugins are turned off: set enabled = true under [plugins].'
const UNSIGNED = 'It is not signed by a trusted publisher (unsigned).'

describe('plugins-wasm', () => {
  test('has the commands of the catalogue, whether plugins are on or off', async () => {
    for (const config of [{}, { enabled: true }]) {
      expect(arrange(config).parts.commands?.map(({ name }) => name)).toEqual(CATALOGUE['plugins-wasm'].commands)
    }
  })

  test('has no tools and reads no folder when plugins are off', async () => {
    const { parts } = arrange({})
    expect(parts.disabledReason).toBe('`enabled` is false')
    expect(parts.tools).toBeUndefined()
    expect(parts.register).toBeUndefined()
  })

  test('a plugin is a tool with one text named `input`', async () => {
    const { parts, plugin, register } = arrange()
    await plugin(['install', await written()])
    await register()
    const [tool, ...more] = parts.tools ?? []
    expect(more).toEqual([])
    expect(tool).toMatchObject({ name: 'echo', description: 'Returns its input.', risk: 'read' })
    expect(tool?.input).toMatchObject({ type: 'object', entries: { input: { type: 'string' } } })
    expect(await tool?.run({ input: 'hello' }, toolContext())).toBe('hello')
  })

  test('grants hosts only to a plugin that asks for the network', async () => {
    const grants = { quiet: { network: ['example.com'] }, asking: { network: ['example.com'] } }
    const { parts, plugin, register } = arrange({ enabled: true, grants })
    await plugin(['install', await written({ name: 'quiet' })])
    await plugin(['install', await written({ name: 'asking', permissions: ['network'] })])
    await plugin(['install', await written({ name: 'without', permissions: ['network'] })])
    await register()
    expect(parts.tools?.map(({ name, risk }) => [name, risk])).toEqual([
      ['asking', 'execute'],
      ['quiet', 'read'],
      ['without', 'read'],
    ])
  })

  test('a plugin may have the name of a member of every object', async () => {
    const { plugin } = arrange()
    const { warned } = await plugin(['install', await written({ name: 'constructor', permissions: ['network'] })])
    expect(warned).toEqual([UNSIGNED, 'It asks for the network: to grant it hosts, set network under [plugins.grants.constructor].'])
  })

  test('a plugin that cannot be loaded is reported and does not affect others', async () => {
    const { parts, plugin, register, host } = arrange()
    await plugin(['install', await written()])
    await mkdir(join(root, 'plugins/empty'))
    await cp(join(root, 'plugins/echo'), join(root, 'plugins/shell'), { recursive: true })
    await register()
    expect(parts.tools?.map(({ name }) => name)).toEqual(['echo'])
    expect(host.logs.filter(({ message }) => message === 'plugin not loaded').map(({ fields }) => fields)).toEqual([
      { plugin: 'empty', reason: 'manifest.json is missing' },
      { plugin: 'shell', reason: "'shell' is the name of a tool of tool-shell; rename the plugin" },
    ])
    const findings = await parts.check?.(new AbortController().signal)
    expect(findings?.map(({ status, detail }) => [status, detail])).toEqual([
      ['ok', 'the built-in test plugin runs; 1 plugin is loaded'],
      ['warn', 'empty is not loaded: manifest.json is missing'],
      ['warn', "shell is not loaded: 'shell' is the name of a tool of tool-shell; rename the plugin"],
    ])
  })

  test('the self-check fails when no plugin can run', async () => {
    const { parts, register } = arrange({ enabled: true, limits: { fuel: 1000 } })
    await register()
    expect((await parts.check?.(AbortSignal.abort()))?.[0]).toMatchObject({ status: 'fail' })
  })

  test('notices a new plugin within seconds', async () => {
    const { plugin, register, host } = arrange()
    await register()
    await host.advance(10_000)
    expect(host.rebuilds).toEqual([])
    await plugin(['install', await written()])
    await host.advance(2000)
    await expect.poll(() => host.rebuilds).toEqual(['plugins changed'])
  })

  test('close ends the watch of the plugin folder', async () => {
    const { plugin, parts, register, host } = arrange()
    await register()
    await parts.close?.()
    await parts.close?.()
    await plugin(['install', await written()])
    await host.advance(10_000)
    expect(host.rebuilds).toEqual([])
    expect(host.clock.sleeping).toBe(0)
  })

  test('the audit log has who installed and who removed a plugin', async () => {
    const { plugin, audited } = arrange()
    const source = await written()
    await plugin(['install', source])
    await plugin('remove echo')
    await expect(plugin('remove echo')).rejects.toMatchObject({ code: 'not_found' })
    expect(audited).toEqual([
      { kind: 'plugin_installed', by: 'cli:ada', detail: { plugin: 'echo', version: '1.0.0', source, trust: 'unsigned' } },
      { kind: 'plugin_removed', by: 'cli:ada', detail: { plugin: 'echo' } },
    ])
  })

  test('does not run a plugin that was replaced after it was loaded', async () => {
    const { parts, plugin, register } = arrange()
    await plugin(['install', await written()])
    await register()
    await plugin('remove echo')
    const other = moduleOf({ memories: [[0, 2]] })
    await plugin(['install', await writePlugin(join(root, 'other'), manifestFor(other), other)])
    await expect(parts.tools?.[0]?.run({ input: 'x' }, toolContext())).rejects.toMatchObject({ code: 'forbidden' })
  })

  test('the commands print text', async () => {
    const { plugin } = arrange({})
    expect(await plugin('list')).toEqual({ exit: 0, printed: ['No plugins installed.'], warned: [] })
    const source = await written({ permissions: ['network'] })
    expect(await plugin(['install', source])).toEqual({
      exit: 0,
      printed: ['Installed echo 1.0.0.'],
      warned: [UNSIGNED, 'It asks for the network: to grant it hosts, set network under [plugins.grants.echo].', TURNED_OFF],
    })
    await mkdir(join(root, 'plugins/empty'))
    expect(await plugin('list')).toEqual({
      exit: 0,
      printed: ['echo 1.0.0 — Returns its input. (unsigned)', 'empty is not loaded: manifest.json is missing'],
      warned: [TURNED_OFF],
    })
    expect((await plugin('info echo')).printed).toEqual([
      'name:          echo',
      'version:       1.0.0',
      'description:   Returns its input.',
      'permissions:   network',
      'trust:         unsigned',
      'publisher_key: -',
      expect.stringMatching(/^sha256: {8}[0-9a-f]{64}$/),
      `module_bytes:  ${MODULE.length}`,
      `source:        ${source}`,
    ])
    expect((await plugin('remove echo')).printed).toEqual(['Removed echo.'])
  })

  test('the commands print JSON', async () => {
    const publisher = newPublisher()
    const { plugin } = arrange({ enabled: true, security: { trusted_publisher_keys: [publisher.key] } })
    const source = await writePlugin(join(root, 'source'), manifestFor(MODULE, {}, publisher), MODULE)
    const installed = await plugin(['install', source], { json: true })
    const info = { name: 'echo', trust: 'trusted', publisher_key: publisher.key, source }
    expect(installed.warned).toEqual([])
    expect(JSON.parse(installed.printed[0] ?? '')).toMatchObject(info)
    expect(JSON.parse((await plugin('list', { json: true })).printed[0] ?? '')).toMatchObject([info])
    expect(JSON.parse((await plugin('info echo', { json: true })).printed[0] ?? '')).toMatchObject(info)
    expect(JSON.parse((await plugin('remove echo', { json: true })).printed[0] ?? '')).toEqual({ removed: 'echo' })
    expect((await plugin('list', { json: true })).printed).toEqual(['[]'])
  })

  test.each([
    ['install', 'invalid_request'],
    ['install a b', 'invalid_request'],
    ['install --force', 'invalid_request'],
    ['remove', 'invalid_request'],
    ['list all', 'invalid_request'],
    ['info', 'invalid_request'],
    ['info nothing', 'not_found'],
    ['remove nothing', 'not_found'],
    ['install /nowhere', 'not_found'],
  ])('`plugin %s` fails with %s', async (line, code) => {
    const error = await arrange()
      .plugin(line)
      .catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(AppError)
    expect(error).toMatchObject({ code })
  })

  test.each(['list', 'install', 'remove echo', 'info echo'])('`plugin %s` reports a folder that cannot be used', async (line) => {
    await writeFile(join(root, 'file'), '')
    const { plugin } = arrange({ plugins_dir: 'file' })
    const run = plugin(line === 'install' ? [line, await written()] : line)
    await expect(run).rejects.toBeInstanceOf(AppError)
  })

  test('refuses configuration out of bounds', () => {
    const schema = feature.section?.schema
    if (!schema) throw new Error('The feature has no section')
    const wrong = [
      { security: { signature_mode: 'permissive' } },
      { limits: { memory_mb: 0 } },
      { limits: { instances: 0 } },
      { limits: { fuel: 1 } },
      ...['https://example.com', 'example.com/path', 'example.com:443', '*.example.com', ''].map((host) => ({
        grants: { echo: { network: [host] } },
      })),
    ]
    for (const config of wrong) expect(v.safeParse(schema, config).success, JSON.stringify(config)).toBe(false)
  })
})

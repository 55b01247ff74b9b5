/** A feature with several sections: each has its own channel, keys of the core, and mistakes. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { effectiveConfig } from '@sluice/config'
import { configuredChannels } from '@sluice/runtime/configured-channels'
import { type Channel, defineFeature, type Parts, secretText } from '@sluice/sdk'
import * as v from 'valibot'
import { afterEach, expect, test } from 'vitest'
import { type OpenRuntime, openRuntime } from './open-runtime.ts'

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean()
})

const provider = defineFeature({
  id: 'provider-offline',
  build: () => ({ providers: [{ kinds: ['offline'], load: async () => ({}) as never }] }),
})

const schema = v.object({
  app_id: v.string(),
  app_secret: secretText(),
  enabled: v.optional(v.boolean(), true),
  allowed_users: v.optional(v.array(v.string()), []),
})
const WORLD = 'channels_config.world'
const REGION = 'channels_config.region'

/** `more` is added to the parts of each section. */
const chat = (more: Parts = {}) =>
  defineFeature({
    id: 'x-chat',
    section: { path: WORLD, schema },
    moreSections: [{ path: REGION, schema }],
    checkSections(values) {
      const [one, two] = [...values.values()].map((value) => (value as v.InferOutput<typeof schema>).app_id)
      return one === two ? [{ section: REGION, key: 'app_id', message: 'must differ from the one of the other section' }] : []
    },
    build(_host, { app_id, enabled, allowed_users }, path = WORLD) {
      const name = path.replace('channels_config.', '')
      const channel = { name, allow: allowed_users, limits: { text: 1, unit: 'utf16' }, missingConfig: app_id } as unknown as Channel
      return enabled ? { channels: [channel], ...more } : { disabledReason: `${name} is off` }
    },
  })

async function open(toml: string, feature = chat()): Promise<OpenRuntime> {
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-sections-'))
  const file = join(dataDir, 'config.toml')
  cleanups.push(() => rmSync(dataDir, { recursive: true, force: true }))
  writeFileSync(file, `[provider]\nkind = "offline"\n${toml}`)
  const features = [provider, feature]
  const runtime = await openRuntime({ features, dataDir, configFile: file, env: {}, profile: 'test', version: '0.0.0', quiet: true })
  cleanups.push(() => runtime.close(0))
  return runtime
}

const world = (more = '') => `[channels_config.world]\napp_id = "w"\napp_secret = "secret-w"\n${more}`
const region = (more = '') => `[channels_config.region]\napp_id = "r"\napp_secret = "secret-r"\n${more}`
const names = (channels: readonly { readonly name: string }[]) => channels.map(({ name }) => name)

test('each configured section has its channel', async () => {
  const both = await open(world() + region('allowed_users = ["ada"]\n'))
  expect(both.snapshot().channels).toMatchObject([
    { name: 'world', missingConfig: 'w', allow: [] },
    { name: 'region', missingConfig: 'r', allow: ['ada'] },
  ])
  expect(configuredChannels(both.snapshot()).ready).toMatchObject([
    { channel: { name: 'world' }, section: WORLD, allowKey: 'allowed_users' },
    { channel: { name: 'region' }, section: REGION },
  ])
  const one = await open(region())
  expect(names(one.snapshot().channels)).toEqual(['region'])
  const channels = configuredChannels(one.snapshot())
  expect([channels.broken, names(channels.unconfigured)]).toEqual([[], ['world']])
})

test('the checks of all sections run, and what the machine lacks for one of them is shown', async () => {
  const finding = { status: 'ok', detail: 'looked' } as const
  const check = async () => [finding]
  const both = await open(world() + region(), chat({ check, missingRequirement: () => 'the package x is not installed' }))
  const parts = both.snapshot().instances.find(({ feature }) => feature.id === 'x-chat')?.parts
  expect(await parts?.check?.(new AbortController().signal)).toEqual([finding, finding])
  expect(parts?.missingRequirement?.()).toBe('the package x is not installed')
  const none = await open(world() + region(), chat())
  const plain = none.snapshot().instances.find(({ feature }) => feature.id === 'x-chat')?.parts
  expect([await plain?.check?.(new AbortController().signal), plain?.missingRequirement?.()]).toEqual([[], undefined])
})

test('a section that is turned off does not turn off the other one', async () => {
  const one = await open(world('enabled = false\n') + region())
  expect(names(one.snapshot().channels)).toEqual(['region'])
  const none = await open(world('enabled = false\n'))
  expect(none.snapshot().channels).toEqual([])
  expect(none.snapshot().instances.map((instance) => [instance.feature.id, instance.state(), instance.reason()])).toContainEqual([
    'x-chat',
    'unconfigured',
    'world is off',
  ])
})

test('without any section, the reason names what each of them needs', async () => {
  const runtime = await open('')
  const reason = runtime
    .snapshot()
    .instances.find(({ feature }) => feature.id === 'x-chat')
    ?.reason()
  expect(reason).toContain(`[${WORLD}] is not configured`)
  expect(reason).toContain(`[${REGION}] is not configured`)
})

test('secrets of each section are masked, and each section has the keys of the core', async () => {
  const runtime = await open(world() + region('agent = "main"\n'))
  const { config } = runtime.snapshot()
  expect(effectiveConfig(config, [chat()], [])).toMatchObject({
    channels_config: { world: { app_id: 'w', app_secret: '[secret]' }, region: { app_id: 'r', app_secret: '[secret]' } },
  })
  expect(config.hasCore(REGION)).toBe(true)
})

test('a mistake that only both sections together show is reported with its line', async () => {
  await expect(open(world() + region().replace('"r"', '"w"'))).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringContaining('`channels_config.region.app_id`: must differ from the one of the other section'),
  })
  const off = await open(world() + region('enabled = false\n').replace('"r"', '"w"'))
  expect(names(off.snapshot().channels)).toEqual(['world'])
})

test('a change of either section builds both channels again', async () => {
  const runtime = await open(world() + region())
  const before = runtime.snapshot().channels
  const reload = await runtime.reload(`[provider]\nkind = "offline"\n${world()}${region('allowed_users = ["*"]\n')}`)
  expect(reload).toMatchObject({ sections: [REGION], rebuilt: ['x-chat'] })
  const after = runtime.snapshot().channels
  expect(names(after)).toEqual(['world', 'region'])
  expect(after.some((channel) => before.includes(channel))).toBe(false)
})

test('a feature with several sections cannot bring more than channels', async () => {
  const runtime = await open(world(), chat({ commands: [] }))
  const instance = runtime.snapshot().instances.find(({ feature }) => feature.id === 'x-chat')
  expect([instance?.state(), instance?.reason()]).toEqual(['failed', expect.stringContaining('can bring only channels')])
})

test('two features with channels of one name are refused when they are composed, and both are named', async () => {
  const other = defineFeature({ id: 'x-other', build: () => ({ channels: [{ name: 'world', allow: [] } as unknown as Channel] }) })
  const dataDir = mkdtempSync(join(tmpdir(), 'sluice-sections-'))
  cleanups.push(() => rmSync(dataDir, { recursive: true, force: true }))
  const configValues = { provider: { kind: 'offline' }, channels_config: { world: { app_id: 'w', app_secret: 's' } } }
  const features = [provider, chat(), other]
  const options = { features, dataDir, configFile: join(dataDir, 'config.toml'), configValues, env: {}, profile: 'test', version: '0.0.0' }
  await expect(openRuntime({ ...options, quiet: true })).rejects.toThrow(
    "the features 'x-chat' and 'x-other' both bring the channel 'world'",
  )
})

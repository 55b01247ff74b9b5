/** A build writes the defaults of each channel next to the code that loads the channel later: they equal the loaded channel's defaults. */
import { join, resolve } from 'node:path'
import { CORE_SECTIONS, effectiveConfig, parseConfig } from '@sluice/config'
import { CATALOGUE, type CatalogueId, type Feature, isUnloaded, laterFeature, loadFeatures, unloadedDefaults } from '@sluice/sdk'
import { expect, test } from 'vitest'

const ROOT = resolve(import.meta.dirname, '../..')

const { sectionDefaults } = (await import(join(ROOT, 'scripts/later-channels.mjs'))) as {
  sectionDefaults(id: CatalogueId): Promise<Record<string, object>>
}

const channels = Object.entries(CATALOGUE).flatMap(([id, row]) =>
  'section' in row && id.startsWith('channel-') ? [id as CatalogueId] : [],
)

const effective = async (feature: Feature): Promise<object> => {
  const source = { configFile: '/none/config.toml', dataDir: '/none', features: [feature], env: {} }
  return effectiveConfig(await parseConfig(source, ''), [feature], CORE_SECTIONS, unloadedDefaults)
}

test.each(channels)('%s shows the same values loaded and not loaded', async (id) => {
  const load = (): Promise<{ readonly default: Feature }> => import(join(ROOT, 'packages', id, 'src/index.ts'))
  const later = laterFeature(id, load, await sectionDefaults(id))
  const unloaded = await effective(later)
  expect(isUnloaded(later)).toBe(true)
  await loadFeatures([later])
  expect(unloaded).toEqual(await effective(later))
})

test('some channels have defaults to show', async () => {
  expect(await sectionDefaults('channel-chatapp')).toMatchObject({ 'channels_config.chatapp': { enabled: true } })
  expect(await sectionDefaults('channel-irc')).toEqual({})
})

import * as v from 'valibot'
import { beforeEach, expect, test } from 'vitest'
import { defineFeature, type Feature, sectionsOfFeature } from './feature.ts'
import { isUnloaded, laterFeature, loadFeatures, unloadedDefaults } from './later-feature.ts'

const ID = 'channel-irc'
const section = { path: 'channels_config.irc', schema: v.object({ server: v.string() }) }
const real = defineFeature({ id: ID, section, build: () => ({ prompt: () => 'built' }) })
const other = defineFeature({ id: 'tool-files', build: () => ({}) })

const build = (feature: Feature, path: string | undefined): string | undefined =>
  feature.build({} as never, {}, ...(path === undefined ? [] : [path])).prompt?.()

let loads: number
let later: Feature
beforeEach(() => {
  loads = 0
  later = laterFeature(ID, async () => {
    loads += 1
    return { default: real }
  })
})

test('a feature that is not loaded has a path without keys, and cannot be built', () => {
  expect(isUnloaded(later)).toBe(true)
  expect(later).toMatchObject({ id: ID, section: { path: section.path } })
  expect(later.section?.schema).not.toBe(section.schema)
  expect(() => later.build({} as never, {})).toThrow('channel-irc is built before it is loaded')
  expect(loads).toBe(0)
})

test('a feature that was loaded is the feature of its package', async () => {
  expect(await loadFeatures([other, later])).toBe(true)
  expect(isUnloaded(later)).toBe(false)
  expect(later.section).toBe(section)
  expect(later.build({} as never, {}).prompt?.()).toBe('built')
})

test('loads each feature once, and only the wanted ones', async () => {
  expect(await loadFeatures([other, later], ({ id }) => id === 'channel-slack')).toBe(false)
  expect(loads).toBe(0)
  await loadFeatures([later])
  expect(await loadFeatures([later])).toBe(false)
  expect(loads).toBe(1)
})

test('a feature with several sections has their paths from the beginning', async () => {
  const paths = ['channels_config.workchat', 'channels_config.workchat_cn']
  const [first, second] = paths.map((path) => ({ path, schema: section.schema }))
  const checked = [{ section: paths[0] ?? '', key: 'app_id', message: 'is used twice' }]
  const several = laterFeature('channel-workchat', async () => ({
    default: {
      id: 'channel-workchat',
      ...(first && { section: first }),
      ...(second && { moreSections: [second] }),
      checkSections: () => checked,
      build: (_host, _config, path) => ({ prompt: () => path ?? 'first' }),
    },
  }))
  expect(sectionsOfFeature(several).map(({ path }) => path)).toEqual(paths)
  expect(several.checkSections?.(new Map())).toEqual([])
  await loadFeatures([several])
  expect(sectionsOfFeature(several)).toEqual([first, second])
  expect(several.checkSections?.(new Map())).toEqual(checked)
  expect([undefined, paths[1]].map((path) => build(several, path))).toEqual(['first', paths[1]])
  expect(Object.keys(later)).not.toContain('moreSections')
})

test('any other feature is loaded from the beginning', () => {
  expect(isUnloaded(other)).toBe(false)
})

test('a feature without a section cannot wait for one', () => {
  expect(() => laterFeature('tool-files', async () => ({ default: other }))).toThrow('tool-files has no section')
})

test('the defaults of a section are known until the feature is loaded', async () => {
  const given = laterFeature(ID, async () => ({ default: real }), { [section.path]: { nick: 'sluice' } })
  expect(unloadedDefaults(given, section.path)).toEqual({ nick: 'sluice' })
  expect(unloadedDefaults(given, 'channels_config.slack')).toBeUndefined()
  expect(unloadedDefaults(later, section.path)).toBeUndefined()
  expect(unloadedDefaults(other, section.path)).toBeUndefined()
  await loadFeatures([given])
  expect(unloadedDefaults(given, section.path)).toBeUndefined()
})

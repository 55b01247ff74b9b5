import * as v from 'valibot'
import { beforeEach, expect, test } from 'vitest'
import { defineFeature, type Feature } from './feature.ts'
import { isUnloaded, laterFeature, loadFeatures } from './later-feature.ts'

const ID = 'channel-irc'
const section = { path: 'channels_config.irc', schema: v.object({ server: v.string() }) }
const real = defineFeature({ id: ID, section, build: () => ({ prompt: () => 'built' }) })
const other = defineFeature({ id: 'tool-files', build: () => ({}) })

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

test('features are loaded once, and only those that are wanted', async () => {
  expect(await loadFeatures([other, later], ({ id }) => id === 'channel-slack')).toBe(false)
  expect(loads).toBe(0)
  await loadFeatures([later])
  expect(await loadFeatures([later])).toBe(false)
  expect(loads).toBe(1)
})

test('any other feature is loaded from the beginning', () => {
  expect(isUnloaded(other)).toBe(false)
})

test('a feature without a section cannot wait for one', () => {
  expect(() => laterFeature('tool-files', async () => ({ default: other }))).toThrow('tool-files has no section')
})

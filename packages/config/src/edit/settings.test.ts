import { defineFeature, laterFeature, type SharedConfig } from '@sluice/sdk'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { shownConfig, shownSchema } from './settings.ts'

test('the schema has the keys of a channel that the file does not name, whose code is loaded for it', async () => {
  const section = { path: 'channels_config.line', schema: v.object({ channel_secret: v.string() }) }
  const line = defineFeature({ id: 'channel-line', section, build: () => ({}) })
  const features = [laterFeature('channel-line', async () => ({ default: line }))]
  expect(await shownSchema({ features })).toMatchObject({
    properties: { channels_config: { properties: { line: { properties: { channel_secret: { type: 'string' } } } } } },
  })
})

test('the configuration of a cluster names what the file of the node holds', async () => {
  const read = async () => ({ version: 1, text: '[agent]\nmax_iterations = 7\n', by: 'node-1', atMs: 0 })
  const source = { configFile: '/nowhere/config.toml', dataDir: '/nowhere', features: [], env: {} }
  const shown = await shownConfig({ ...source, shared: { read } as unknown as SharedConfig })
  expect(shown).toMatchObject({ isShared: true, own: ['gateway.host', 'gateway.port', 'store', 'cluster'] })
  expect(shown.keys).toContainEqual({ key: 'agent.max_iterations', value: 7, source: 'file', variable: null })
  expect(await shownConfig(source)).toMatchObject({ isShared: false, own: [] })
})

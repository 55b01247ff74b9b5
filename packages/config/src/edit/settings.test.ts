import { defineFeature, laterFeature } from '@sluice/sdk'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { shownSchema } from './settings.ts'

test('the schema has the keys of a channel that the file does not name, whose code is loaded for it', async () => {
  const section = { path: 'channels_config.line', schema: v.object({ channel_secret: v.string() }) }
  const line = defineFeature({ id: 'channel-line', section, build: () => ({}) })
  const features = [laterFeature('channel-line', async () => ({ default: line }))]
  expect(await shownSchema({ features })).toMatchObject({
    properties: { channels_config: { properties: { line: { properties: { channel_secret: { type: 'string' } } } } } },
  })
})

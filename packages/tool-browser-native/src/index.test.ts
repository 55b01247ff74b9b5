import { testHost } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import feature from './index.ts'

test('offers the library that starts Chromium', async () => {
  const { browserLibrary } = feature.build(testHost(), {}).services ?? {}
  expect(browserLibrary?.missing()).toBeUndefined()
  expect(await browserLibrary?.load()).toHaveProperty('chromium.launch')
})

import { Secret } from '@sluice/sdk'
import { providerConformance } from '@sluice/testkit/provider'
import { expect } from 'vitest'
import feature from './index.ts'

providerConformance({
  feature,
  settings: [({ url, apiKey }) => ({ kind: 'anthropic', base_url: `${url}/v1`, api_key: new Secret(apiKey), model: 'claude-haiku-5-5' })],
  invalid: [
    { settings: { kind: 'anthropic', api_key: new Secret('key') }, names: 'model' },
    { settings: { kind: 'anthropic', model: 'small' }, names: 'api_key' },
    { settings: { kind: 'anthropic', model: 'small', api_key: new Secret('two\nlines') }, names: 'api_key' },
    { settings: { kind: 'anthropic', model: 'small', api_key: new Secret('key'), base_url: 'nowhere' }, names: 'base_url' },
  ],
  detects: [
    { env: { ANTHROPIC_API_KEY: 'key' }, finds: { kind: 'anthropic', model: expect.stringMatching(/^claude-/), base_url: undefined } },
    {
      env: { ANTHROPIC_API_KEY: 'key', ANTHROPIC_BASE_URL: 'http://127.0.0.1:8000/', ANTHROPIC_MODEL: 'mine' },
      finds: { kind: 'anthropic', model: 'mine', base_url: 'http://127.0.0.1:8000/v1' },
    },
  ],
})

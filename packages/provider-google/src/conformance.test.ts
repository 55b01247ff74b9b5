import { Secret } from '@sluice/sdk'
import { providerConformance } from '@sluice/testkit/provider'
import feature from './index.ts'

providerConformance({
  feature,
  settings: [({ url, apiKey }) => ({ kind: 'google', base_url: `${url}/v1beta`, api_key: new Secret(apiKey), model: 'small' })],
  invalid: [
    { settings: { kind: 'google', api_key: new Secret('key') }, names: 'model' },
    { settings: { kind: 'google', model: 'small' }, names: 'api_key' },
    { settings: { kind: 'google', model: 'small', api_key: new Secret('two\nlines') }, names: 'api_key' },
    { settings: { kind: 'google', model: 'small', api_key: new Secret('key'), base_url: 'nowhere' }, names: 'base_url' },
  ],
  detects: [],
})

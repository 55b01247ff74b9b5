import { toolConformance } from '@sluice/testkit/tool'
import feature from './index.ts'

const API_KEY = 'sidecar-key-0123456789'

toolConformance({
  feature,
  config: { enabled: true, backend: 'computer_use', allowed_domains: ['example.com'], computer_use: { api_key: API_KEY } },
  host: () => ({
    publicAddresses: async () => [{ address: '93.184.215.14', family: 4 }],
    fetch: async (_url, init) => Response.json({ data: { seen: new Headers(init?.headers).get('authorization') } }),
  }),
  examples: [
    { tool: 'browser', input: { action: 'open', url: 'https://example.com/' } },
    { tool: 'browser', input: { action: 'screen_capture' } },
  ],
  secrets: [API_KEY],
})

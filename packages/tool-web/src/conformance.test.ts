import { toolConformance } from '@sluice/testkit/tool'
import feature from './index.ts'

const KEY = 'k-canary-0123456789'

toolConformance({
  feature,
  config: { search: 'brave', search_key: KEY },
  host: () => ({
    fetch: async () => Response.json({ web: { results: [{ title: 'A', url: 'https://a.example/', description: 'words' }] } }),
    publicFetch: async () => new Response('plain words', { headers: { 'content-type': 'text/plain' } }),
  }),
  examples: [
    { tool: 'web_search', input: { query: 'words' } },
    { tool: 'web_fetch', input: { url: 'https://a.example/' } },
  ],
  secrets: [KEY],
})

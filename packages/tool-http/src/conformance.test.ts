import { AppError } from '@sluice/sdk'
import { toolConformance } from '@sluice/testkit/tool'
import feature from './index.ts'

toolConformance({
  feature,
  config: { allowed_domains: ['example.com'] },
  host: () => ({
    publicFetch: async (url, { admit }) => {
      const parsed = URL.parse(url)
      if (!parsed) throw new AppError('invalid_request', 'the URL is not valid')
      admit?.(parsed)
      return new Response('hello')
    },
  }),
  examples: [{ tool: 'http_request', input: { url: 'https://example.com/' } }],
})

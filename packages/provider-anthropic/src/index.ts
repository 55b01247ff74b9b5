/** Models behind the Anthropic messages interface. */
import { defineFeature } from '@sluice/sdk'
import { anthropic } from './anthropic.ts'

export default defineFeature({
  id: 'provider-anthropic',
  build: () => ({ providers: [anthropic] }),
})

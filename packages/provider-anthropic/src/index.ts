/** Adds the provider for models of the Anthropic Messages API. */
import { defineFeature } from '@sluice/sdk'
import { anthropic } from './anthropic.ts'

export default defineFeature({
  id: 'provider-anthropic',
  build: () => ({ providers: [anthropic] }),
})

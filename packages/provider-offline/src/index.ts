/** Adds the offline provider, which is in every build: it needs no key and no network, and answers from fixed rules. */
import { defineFeature } from '@sluice/sdk'
import { offlineModel } from './model.ts'

export default defineFeature({
  id: 'provider-offline',
  build: () => ({
    providers: [{ kinds: ['offline'], load: async () => offlineModel() }],
  }),
})

/** The provider that is always there: no key, no network, and no pretence of being a model. */
import { defineFeature } from '@sluice/sdk'
import { offlineModel } from './model.ts'

export default defineFeature({
  id: 'provider-offline',
  build: () => ({
    providers: [{ kinds: ['offline'], load: async () => offlineModel() }],
  }),
})

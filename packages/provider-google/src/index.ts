/** Adds the provider for models of the Gemini API. */
import { defineFeature } from '@sluice/sdk'
import { google } from './google.ts'

export default defineFeature({
  id: 'provider-google',
  build: () => ({ providers: [google] }),
})

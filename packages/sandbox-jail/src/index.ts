/** The `jail` sandbox backend: firejail (docs/sandboxes.md). */
import { defineFeature } from '@sluice/sdk'
import { JailSandbox, missingRequirement } from './jail-sandbox.ts'

export default defineFeature({
  id: 'sandbox-jail',
  build: ({ dataDir }) => ({ sandboxes: [new JailSandbox(dataDir)], missingRequirement }),
})

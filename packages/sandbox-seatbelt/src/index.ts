/** The feature: the `seatbelt` backend, sandbox-exec of macOS (§2.7). */
import { defineFeature } from '@sluice/sdk'
import { seatbelt } from './seatbelt.ts'

export default defineFeature({
  id: 'sandbox-seatbelt',
  build: ({ dataDir }) => ({
    sandboxes: [seatbelt({ dataDir })],
    missingRequirement: () => (process.platform === 'darwin' ? undefined : 'it needs macOS'),
  }),
})

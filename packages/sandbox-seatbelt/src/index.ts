/** The `seatbelt` sandbox backend: sandbox-exec of macOS (docs/sandboxes.md). */
import { defineFeature } from '@sluice/sdk'
import { SeatbeltSandbox } from './seatbelt-sandbox.ts'

export default defineFeature({
  id: 'sandbox-seatbelt',
  build: ({ dataDir }) => ({
    sandboxes: [new SeatbeltSandbox(dataDir)],
    missingRequirement: () => (process.platform === 'darwin' ? undefined : 'it needs macOS'),
  }),
})

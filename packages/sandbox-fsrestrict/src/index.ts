/** The feature: the `fsrestrict` backend, Landlock applied to each command alone (§2.7 `sandbox-fsrestrict`). */
import { join } from 'node:path'
import { defineFeature } from '@sluice/sdk'
import { fsrestrict } from './fsrestrict.ts'

export default defineFeature({
  id: 'sandbox-fsrestrict',
  build: ({ dataDir, clock }) => ({
    sandboxes: [fsrestrict({ folder: join(dataDir, 'sandbox-fsrestrict'), hidden: dataDir, clock })],
    missingRequirement: () => (process.platform === 'linux' ? undefined : 'it needs Linux'),
  }),
})

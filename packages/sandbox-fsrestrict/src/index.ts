/** The `fsrestrict` sandbox backend: Landlock, applied to each command (docs/sandbox-fsrestrict.md). */
import { join } from 'node:path'
import { defineFeature } from '@sluice/sdk'
import { FsrestrictSandbox } from './fsrestrict-sandbox.ts'

export default defineFeature({
  id: 'sandbox-fsrestrict',
  build: ({ dataDir, clock }) => ({
    sandboxes: [new FsrestrictSandbox({ folder: join(dataDir, 'sandbox-fsrestrict'), hidden: dataDir, clock })],
    missingRequirement: () => (process.platform === 'linux' ? undefined : 'it needs Linux'),
  }),
})

/** The feature: the `userns` backend, user namespaces made by bubblewrap (§2.7). */
import { join } from 'node:path'
import { defineFeature } from '@sluice/sdk'
import { missingRequirement, userns } from './userns.ts'

export default defineFeature({
  id: 'sandbox-userns',
  build({ dataDir }) {
    const { sandbox, close } = userns({ folder: join(dataDir, 'sandbox-userns'), hidden: dataDir })
    return { sandboxes: [sandbox], missingRequirement, close }
  },
})

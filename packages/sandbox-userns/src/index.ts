/** The `userns` sandbox backend: user namespaces, which bubblewrap creates (docs/sandboxes.md). */
import { join } from 'node:path'
import { defineFeature } from '@sluice/sdk'
import { missingRequirement, UsernsSandbox } from './userns-sandbox.ts'

export default defineFeature({
  id: 'sandbox-userns',
  build({ dataDir }) {
    const sandbox = new UsernsSandbox(join(dataDir, 'sandbox-userns'), dataDir)
    return { sandboxes: [sandbox], missingRequirement, close: () => sandbox.close() }
  },
})

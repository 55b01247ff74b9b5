/** The shell tool: the policy checks each command (docs/contract.md#policy), then the sandbox confines its processes. */
import { defineFeature } from '@sluice/sdk'
import { shellSection } from './config.ts'
import { shell } from './shell.ts'

export default defineFeature({
  id: 'tool-shell',
  section: shellSection,
  build: (host, config) => ({ tools: [shell(host, config)] }),
})

/** The shell for the model: the policy looks at the command first, then the sandbox holds what runs (§2.6 `[security.*]`). */
import { defineFeature } from '@sluice/sdk'
import { shellSection } from './config.ts'
import { shell } from './shell.ts'

export default defineFeature({
  id: 'tool-shell',
  section: shellSection,
  build: (host, config) => ({ tools: [shell(host, config)] }),
})

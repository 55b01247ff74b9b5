/** The `container` sandbox backend: Docker or Podman (docs/sandboxes.md). */
import { defineFeature } from '@sluice/sdk'
import { containerSection } from './config.ts'
import { ContainerSandbox, missingRequirement } from './container-sandbox.ts'

export default defineFeature({
  id: 'sandbox-container',
  section: containerSection,
  build: (_host, config) => ({
    sandboxes: [new ContainerSandbox(config)],
    missingRequirement: () => missingRequirement(config),
  }),
})

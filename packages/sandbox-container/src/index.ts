/** The feature: the `container` backend, Docker or Podman (§2.7). */
import { defineFeature } from '@sluice/sdk'
import { containerSection } from './config.ts'
import { container, missingRequirement } from './container.ts'

export default defineFeature({
  id: 'sandbox-container',
  section: containerSection,
  build: (_host, config) => ({
    sandboxes: [container(config)],
    missingRequirement: () => missingRequirement(config),
  }),
})

/** The feature: the `container` backend, Docker or Podman (§2.7). */
import { defineFeature, hasProgram } from '@sluice/sdk'
import { containerSection } from './config.ts'
import { container, engineNames, notInstalled } from './container.ts'

export default defineFeature({
  id: 'sandbox-container',
  section: containerSection,
  build: (_host, config) => ({
    sandboxes: [container(config)],
    lacks: () => (engineNames(config).some(hasProgram) ? undefined : notInstalled(config)),
  }),
})

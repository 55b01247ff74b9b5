/** The feature: the `jail` backend, firejail (§2.7). */
import { defineFeature } from '@sluice/sdk'
import { jail, missingRequirement } from './jail.ts'

export default defineFeature({ id: 'sandbox-jail', build: ({ dataDir }) => ({ sandboxes: [jail({ dataDir })], missingRequirement }) })

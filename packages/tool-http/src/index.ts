/** HTTP for the model, to the public hosts the operator listed. `host.publicFetch` keeps it away from everything inside. */
import { defineFeature } from '@sluice/sdk'
import { httpSection } from './config.ts'
import { httpRequest } from './http-request.ts'

export default defineFeature({
  id: 'tool-http',
  section: httpSection,
  build: (host, config) => ({ tools: [httpRequest(host, config)] }),
})

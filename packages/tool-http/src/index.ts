/** Lets the model call public hosts that the operator allows. `host.publicFetch` rejects addresses of private networks. */
import { defineFeature } from '@sluice/sdk'
import { httpSection } from './config.ts'
import { httpRequest } from './http-request.ts'

export default defineFeature({
  id: 'tool-http',
  section: httpSection,
  build: (host, config) => ({ tools: [httpRequest(host, config)] }),
})

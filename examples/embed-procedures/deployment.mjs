// A feature of this application with one tool, which a step of the procedure calls.
import { defineFeature, defineTool } from '@sluice/sdk'
import * as v from 'valibot'

const deploy = defineTool({
  name: 'deploy',
  description: 'Deploys a release to an environment.',
  input: v.object({ release: v.string(), environment: v.picklist(['staging', 'production']) }),
  risk: 'execute',
  egress: false,
  untrusted: false,
  async run({ release, environment }) {
    console.log(`deploying ${release} to ${environment}`)
    return `${release} is live in ${environment}`
  },
})

export const deployment = defineFeature({ id: 'x-deployment', build: () => ({ tools: [deploy] }) })

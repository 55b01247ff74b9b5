// The same use in TypeScript.
import { openProcedures, type ProceduresAlone } from '@sluice/daemon/procedures'
import { defineFeature, defineTool, type SopRun } from '@sluice/sdk'
import * as v from 'valibot'

const deploy = defineTool({
  name: 'deploy',
  description: 'Deploys a release.',
  input: v.object({ release: v.string() }),
  risk: 'execute',
  egress: false,
  untrusted: false,
  run: async ({ release }) => release.toUpperCase(),
})

export async function ship(dataDir: string, release: string): Promise<SopRun> {
  const features = [defineFeature({ id: 'x-deployment', build: () => ({ tools: [deploy] }) })]
  await using procedures: ProceduresAlone = await openProcedures({ features, dataDir })
  return procedures.settled(await procedures.start('release', { release }))
}

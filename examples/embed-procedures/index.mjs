// Runs the procedure engine alone: a release that a person approves, with a tool of this application and no model.
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { openProcedures } from '@sluice/daemon/procedures'
import { deployment } from './deployment.mjs'

const { DATA_DIR = mkdtempSync(join(tmpdir(), 'embed-procedures-')) } = process.env
await using procedures = await openProcedures({
  features: [deployment],
  dataDir: DATA_DIR,
  logger: false,
  config: {
    sop: { sops_dir: join(import.meta.dirname, 'sops') },
    // The procedure asks a person before the step that ships, so its calls need no further question.
    security: { policy: { auto_approve: ['deploy'] } },
  },
})
procedures.on('sop_step', ({ step, status }) => console.log(`step ${step}: ${status}`))

const run = await procedures.start('release', { release: 'v1.4.0' })
const waiting = await procedures.settled(run)
console.log(`the run is at step ${waiting.step}: ${waiting.status}`)
if (await agrees()) await procedures.approve(run)
else await procedures.sops.cancel(run, 'cli:me', 'nobody wanted it')
console.log(`the run ended: ${(await procedures.settled(run)).status}`)

async function agrees() {
  if (process.argv.includes('--try')) return true
  const lines = createInterface({ input: process.stdin, output: process.stdout })
  const answer = await lines.question('Ship it? [y/N] ')
  lines.close()
  return answer === 'y'
}

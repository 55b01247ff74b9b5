import { dockerEngine, ENGINE_IMAGE } from '@sluice/testkit/docker-engine'
import { sandboxEscapes } from '@sluice/testkit/escape'
import { runBare } from '@sluice/testkit/run-bare'
import { sandboxConformance } from '@sluice/testkit/sandbox'
import { afterAll, describe } from 'vitest'
import { container } from './container.ts'

const engine = process.env.SLUICE_SANDBOXES ? await dockerEngine() : { missing: 'slow: pnpm test:sandboxes runs it' }
if ('env' in engine) Object.assign(process.env, engine.env)
const sandbox = container({ engine: 'docker', image: ENGINE_IMAGE })
const { available, detail } =
  'missing' in engine ? { available: false, detail: engine.missing } : await sandbox.probe(new AbortController().signal, runBare)
if (!available && 'stop' in engine) await engine.stop()
afterAll(async () => {
  if ('stop' in engine) await engine.stop()
})

describe.skipIf(!available)(detail, () => {
  const subject = { name: 'container', create: () => sandbox }
  sandboxConformance(subject)
  sandboxEscapes(subject)
})

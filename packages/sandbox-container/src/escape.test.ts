import { dockerEngine, ENGINE_IMAGE } from '@sluice/qa/docker-engine'
import { sandboxEscapes } from '@sluice/qa/escape'
import { runBare } from '@sluice/testkit/run-bare'
import { sandboxConformance } from '@sluice/testkit/sandbox'
import { afterAll, describe, vi } from 'vitest'
import { ContainerSandbox } from './container-sandbox.ts'
import { KNOWN_LIMITATIONS } from './known-limitations.ts'

vi.setConfig({ testTimeout: 120_000 })
const engine = process.env.SLUICE_SANDBOXES ? await dockerEngine() : { missing: 'slow; `pnpm test:sandboxes` runs it' }
if ('env' in engine) Object.assign(process.env, engine.env)
const sandbox = new ContainerSandbox({ engine: 'docker', image: ENGINE_IMAGE })
const { available, detail } =
  'missing' in engine ? { available: false, detail: engine.missing } : await sandbox.probe(new AbortController().signal, runBare)
if (!available && 'stop' in engine) await engine.stop()
afterAll(async () => {
  if ('stop' in engine) await engine.stop()
})

describe.skipIf(!available)(detail, () => {
  const create = () => sandbox
  sandboxConformance({
    name: 'container',
    create,
    except: [{ rule: 'the network works where the policy allows it', why: 'the engine of this test has no bridge' }],
  })
  sandboxEscapes({ name: 'container', create, except: KNOWN_LIMITATIONS })
})

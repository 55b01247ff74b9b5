import { runBare } from '@sluice/testkit/run-bare'
import { sandboxConformance } from '@sluice/testkit/sandbox'
import { describe, vi } from 'vitest'
import { jail } from './jail.ts'

vi.setConfig({ testTimeout: 120_000 })
const sandbox = jail({ dataDir: '/var/lib/sluice' })
const { available, detail } = process.env.SLUICE_SANDBOXES
  ? await sandbox.probe(new AbortController().signal, runBare)
  : { available: false, detail: 'slow: `pnpm test:sandboxes` runs it' }

describe.skipIf(!available)(detail, () => {
  sandboxConformance({ name: 'jail', create: () => sandbox })
})

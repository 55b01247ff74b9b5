import { runBare } from '@sluice/testkit/run-bare'
import { sandboxConformance } from '@sluice/testkit/sandbox'
import { describe, vi } from 'vitest'
import { JailSandbox } from './jail-sandbox.ts'

vi.setConfig({ testTimeout: 120_000 })
const sandbox = new JailSandbox('/var/lib/sluice')
const { available, detail } = process.env.SLUICE_SANDBOXES
  ? await sandbox.probe(new AbortController().signal, runBare)
  : { available: false, detail: 'slow; `pnpm test:sandboxes` runs it' }

describe.skipIf(!available)(detail, () => {
  sandboxConformance({ name: 'jail', create: () => sandbox })
})

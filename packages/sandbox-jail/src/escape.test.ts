import { sandboxEscapes } from '@sluice/qa/escape'
import { runBare } from '@sluice/testkit/run-bare'
import { describe, vi } from 'vitest'
import { jail } from './jail.ts'
import { NOT_PROMISED } from './not-promised.ts'

vi.setConfig({ testTimeout: 120_000 })
const sandbox = jail({ dataDir: '/var/lib/sluice' })
const { available, detail } = process.env.SLUICE_SANDBOXES
  ? await sandbox.probe(new AbortController().signal, runBare)
  : { available: false, detail: 'slow: `pnpm test:sandboxes` runs it' }

describe.skipIf(!available)(detail, () => {
  sandboxEscapes({ name: 'jail', create: () => sandbox, except: NOT_PROMISED })
})

import { sandboxEscapes } from '@sluice/qa/escape'
import { runBare } from '@sluice/testkit/run-bare'
import { describe, vi } from 'vitest'
import { JailSandbox } from './jail-sandbox.ts'
import { KNOWN_LIMITATIONS } from './known-limitations.ts'

vi.setConfig({ testTimeout: 120_000 })
const sandbox = new JailSandbox('/var/lib/sluice')
const { available, detail } = process.env.SLUICE_SANDBOXES
  ? await sandbox.probe(new AbortController().signal, runBare)
  : { available: false, detail: 'slow; `pnpm test:sandboxes` runs it' }

describe.skipIf(!available)(detail, () => {
  sandboxEscapes({ name: 'jail', create: () => sandbox, except: KNOWN_LIMITATIONS })
})

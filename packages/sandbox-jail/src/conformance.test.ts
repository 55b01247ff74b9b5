import { runBare } from '@sluice/testkit/run-bare'
import { sandboxConformance } from '@sluice/testkit/sandbox'
import { describe } from 'vitest'
import { jail } from './jail.ts'

const sandbox = jail()
const { available, detail } = await sandbox.probe(new AbortController().signal, runBare)

describe.skipIf(!available)(detail, () => {
  sandboxConformance({ name: 'jail', create: () => sandbox })
})

import { sandboxEscapes } from '@sluice/testkit/escape'
import { runBare } from '@sluice/testkit/run-bare'
import { describe } from 'vitest'
import { jail } from './jail.ts'

const sandbox = jail()
const { available, detail } = await sandbox.probe(new AbortController().signal, runBare)

describe.skipIf(!available)(detail, () => {
  sandboxEscapes({ name: 'jail', create: () => sandbox })
})

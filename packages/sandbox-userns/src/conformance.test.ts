import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runBare } from '@sluice/testkit/run-bare'
import { sandboxConformance } from '@sluice/testkit/sandbox'
import { afterAll, describe } from 'vitest'
import { userns } from './userns.ts'

const folder = mkdtempSync(join(tmpdir(), 'userns-'))
const { sandbox } = userns({ folder })
const { available, detail } = await sandbox.probe(new AbortController().signal, runBare)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe.skipIf(!available)(detail, () => {
  sandboxConformance({ name: 'userns', create: () => sandbox })
})

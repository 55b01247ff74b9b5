import { rmSync } from 'node:fs'
import { sandboxConformance } from '@sluice/testkit/sandbox'
import { afterAll, describe } from 'vitest'
import { EXCLUDED_RULES } from './testing/excluded-rules.ts'
import { probedFsrestrict } from './testing/probed-fsrestrict.ts'

const { available, detail, sandbox, folder } = await probedFsrestrict()
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe.skipIf(!available)(detail, () => {
  sandboxConformance({ name: 'fsrestrict', create: () => sandbox, except: EXCLUDED_RULES.conformance })
})

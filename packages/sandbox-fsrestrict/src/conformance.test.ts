import { rmSync } from 'node:fs'
import { sandboxConformance } from '@sluice/testkit/sandbox'
import { afterAll, describe } from 'vitest'
import { LEFT_OUT } from './testing/left-out.ts'
import { subject } from './testing/subject.ts'

const { available, detail, sandbox, folder } = await subject()
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe.skipIf(!available)(detail, () => {
  sandboxConformance({ name: 'fsrestrict', create: () => sandbox, except: LEFT_OUT.conformance })
})

import { rmSync } from 'node:fs'
import { sandboxEscapes } from '@sluice/testkit/escape'
import { afterAll, describe } from 'vitest'
import { subject } from './testing/subject.ts'

const { available, detail, sandbox, folder } = await subject()
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe.skipIf(!available)(detail, () => {
  sandboxEscapes({ name: 'fsrestrict', create: () => sandbox })
})

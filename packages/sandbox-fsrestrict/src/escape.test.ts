import { rmSync } from 'node:fs'
import { sandboxEscapes } from '@sluice/qa/escape'
import { afterAll, describe } from 'vitest'
import { LEFT_OUT } from './testing/left-out.ts'
import { subject } from './testing/subject.ts'

const { available, detail, sandbox, folder } = await subject()
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe.skipIf(!available)(detail, () => {
  sandboxEscapes({ name: 'fsrestrict', create: () => sandbox, except: LEFT_OUT.escapes })
})

import { rmSync } from 'node:fs'
import { sandboxEscapes } from '@sluice/qa/escape'
import { afterAll, describe } from 'vitest'
import { probedUserns } from './testing/probed-userns.ts'

const { folder, sandbox, available, detail } = await probedUserns()
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe.skipIf(!available)(detail, () => {
  sandboxEscapes({ name: 'userns', create: () => sandbox })
})

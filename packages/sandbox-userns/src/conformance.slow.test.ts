import { rmSync } from 'node:fs'
import { sandboxConformance } from '@sluice/testkit/sandbox'
import { afterAll, describe } from 'vitest'
import { probedUserns } from './testing/probed-userns.ts'

const { folder, sandbox, available, detail } = await probedUserns()
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe.skipIf(!available)(detail, () => {
  sandboxConformance({ name: 'userns', create: () => sandbox })
})

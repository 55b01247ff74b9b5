import { testHost } from '@sluice/testkit/host'
import { memoryWorkspace } from '@sluice/testkit/memory-workspace'
import { toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { afterEach, expect, test } from 'vitest'
import feature from './index.ts'
import { handMade } from './testing/hand-made.ts'

const closing: (() => Promise<void> | undefined)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const arrange = (files: Record<string, string | Uint8Array> = {}) => {
  const host = testHost({ workspace: memoryWorkspace(files) })
  const parts = feature.build(host, {})
  closing.push(async () => parts.close?.())
  const [tool] = parts.tools ?? []
  const pdfText = parts.services?.pdfText
  if (!tool || !pdfText) throw new Error('a part is missing')
  const run = async (input: object, signal?: AbortSignal) => tool.run(v.parse(tool.input, input), toolContext(signal))
  return { host, parts, tool, run, pdfText }
}

test('pages come back', async () => {
  const { run } = arrange({ 'a.pdf': handMade({ pages: ['one', 'two', 'three'] }) })
  expect(await run({ path: 'a.pdf' })).toBe('[pages: 3, chars: 11, truncated: false]\n[page 1]\none\n[page 2]\ntwo\n[page 3]\nthree')
  expect(await run({ path: 'a.pdf', pages: '2-' })).toBe('[pages: 3, chars: 8, truncated: false]\n[page 2]\ntwo\n[page 3]\nthree')
})

test('check', async () => {
  const { parts } = arrange()
  expect(await parts.check?.(new AbortController().signal)).toMatchObject([{ status: 'ok' }])
})

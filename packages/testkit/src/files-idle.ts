/** Makes the file operations of a test take no time of its clock. */
import { createHook } from 'node:async_hooks'
import { afterAll, beforeAll } from 'vitest'
import { until } from './until.ts'

/**
 * Watches the file operations of this process while the tests of a file run. The returned function resolves once no operation is
 * under way and the code that awaited the last one has run: a test that advances a clock calls it after each step.
 */
export function watchFileOperations(): () => Promise<void> {
  const underWay = new Set<number>()
  const hook = createHook({
    init(id, type) {
      if (type.startsWith('FSREQ') || type === 'FILEHANDLECLOSEREQ') underWay.add(id)
    },
    before: (id) => void underWay.delete(id),
  })
  beforeAll(() => void hook.enable())
  afterAll(() => void hook.disable())
  return () => until(() => underWay.size === 0)
}

import { expect, test } from 'vitest'
import { shareRuns } from './share-runs.ts'

function arrange() {
  const runs: PromiseWithResolvers<void>[] = []
  const look = shareRuns(() => {
    const run = Promise.withResolvers<void>()
    runs.push(run)
    return run.promise
  })
  return { runs, look, begun: () => new Promise((resolve) => setImmediate(() => resolve(runs.length))) }
}

test('callers share a run that has not begun, and wait for its end', async () => {
  const { runs, look, begun } = arrange()
  const both = Promise.all([look(), look()])
  expect(await begun()).toBe(1)
  runs[0]?.resolve()
  await both
})

test('a call during a run gets one of its own, which begins after the end of that one', async () => {
  const { runs, look, begun } = arrange()
  const first = look()
  await begun()
  const second = look()
  expect(await begun()).toBe(1)
  runs[0]?.resolve()
  await first
  expect(await begun()).toBe(2)
  runs[1]?.resolve()
  await second
})

test('a run that fails rejects for its callers only', async () => {
  const { runs, look, begun } = arrange()
  const first = look()
  await begun()
  runs[0]?.reject(new Error('the store is away'))
  await expect(first).rejects.toThrow('the store is away')
  const second = look()
  await begun()
  runs[1]?.resolve()
  await second
})

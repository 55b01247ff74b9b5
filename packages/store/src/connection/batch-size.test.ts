import { describe, expect, test } from 'vitest'
import { BatchSize } from './batch-size.ts'

/** Commits until one probes for further writers. Returns the number of commits before it. */
function untilProbe(batchSize: BatchSize, units: number): number {
  for (let commits = 0; commits < 10_000; commits++) {
    if (!batchSize.isComplete(units)) return commits
    batchSize.committed(units)
  }
  throw new Error('no commit probes')
}

describe('BatchSize', () => {
  test('does not delay a single writer', () => {
    expect(new BatchSize().isComplete(1)).toBe(true)
  })

  test('waits for as many writers as the last commit had', () => {
    const batchSize = new BatchSize()
    batchSize.committed(8)
    expect(batchSize.isComplete(7)).toBe(false)
    expect(batchSize.isComplete(8)).toBe(true)
    batchSize.committed(5)
    expect(batchSize.isComplete(5)).toBe(true)
  })

  test('joins two alternating groups after a probe', () => {
    const batchSize = new BatchSize()
    batchSize.committed(8)
    untilProbe(batchSize, 8)
    batchSize.committed(16)
    expect(batchSize.isComplete(8)).toBe(false)
    expect(batchSize.isComplete(16)).toBe(true)
  })

  test('probes rarely without further writers, and often after one arrived', () => {
    const batchSize = new BatchSize()
    const pauses = [1, 2, 3, 4].map(() => {
      const pause = untilProbe(batchSize, 1)
      batchSize.committed(1)
      return pause
    })
    expect(pauses.every((pause, at) => at === 0 || pause > 1.5 * (pauses[at - 1] ?? 0))).toBe(true)
    untilProbe(batchSize, 1)
    batchSize.committed(4)
    expect(untilProbe(batchSize, 4)).toBeLessThan(pauses[1] ?? 0)
  })
})

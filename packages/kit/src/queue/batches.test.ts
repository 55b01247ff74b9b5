import { describe, expect, test } from 'vitest'
import { forEachInBatches, mapConcurrently } from './batches.ts'

const count = (length: number) => Array.from({ length }, (_, index) => index)

describe('mapConcurrently', () => {
  test('returns results in order and bounds the concurrency', async () => {
    let busy = 0
    let most = 0
    const work = async (item: number) => {
      most = Math.max(most, ++busy)
      for (let ticks = 0; ticks < item % 5; ticks++) await Promise.resolve()
      busy -= 1
      return item * 2
    }
    const items = count(50)
    expect(await mapConcurrently(items, 4, work)).toEqual(items.map((item) => item * 2))
    expect(most).toBe(4)
    expect(await mapConcurrently([], 4, work)).toEqual([])
  })
})

describe('forEachInBatches', () => {
  test('works in order and yields to the event loop between batches', async () => {
    const seen: unknown[] = []
    const working = forEachInBatches(count(5), 2, (item) => seen.push(item))
    expect(seen).toEqual([0, 1])
    setImmediate(() => seen.push('another'))
    await working
    expect(seen).toEqual([0, 1, 2, 3, 'another', 4])
  })

  test('handles a single batch synchronously', async () => {
    const seen: unknown[] = []
    void forEachInBatches(count(3), 3, (item) => seen.push(item))
    expect(seen).toEqual([0, 1, 2])
    await forEachInBatches([], 3, () => seen.push('none'))
    expect(seen).toHaveLength(3)
  })

  test('stops at the first error', async () => {
    const seen: number[] = []
    const failing = forEachInBatches(count(9), 2, (item) => {
      if (item === 3) throw new Error('three')
      seen.push(item)
    })
    await expect(failing).rejects.toThrow('three')
    expect(seen).toEqual([0, 1, 2])
  })
})

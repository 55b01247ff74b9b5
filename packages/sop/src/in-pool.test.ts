import { expect, test } from 'vitest'
import { inPool } from './in-pool.ts'

test('results stand in the order of the items, and no more than a few are under way', async () => {
  let busy = 0
  let most = 0
  const work = async (item: number) => {
    most = Math.max(most, ++busy)
    for (let turns = 0; turns < item % 5; turns++) await Promise.resolve()
    busy -= 1
    return item * 2
  }
  const items = Array.from({ length: 50 }, (_, index) => index)
  expect(await inPool(items, 4, work)).toEqual(items.map((item) => item * 2))
  expect(most).toBe(4)
  expect(await inPool([], 4, work)).toEqual([])
})

import { expect, test } from 'vitest'
import { inTurns } from './in-turns.ts'

const count = (length: number) => Array.from({ length }, (_, index) => index)

test('all of it is done in order, and others have their turns in between', async () => {
  const seen: unknown[] = []
  const working = inTurns(count(5), 2, (item) => seen.push(item))
  expect(seen).toEqual([0, 1])
  setImmediate(() => seen.push('another'))
  await working
  expect(seen).toEqual([0, 1, 2, 3, 'another', 4])
})

test('what fits into one turn is done at once', async () => {
  const seen: unknown[] = []
  void inTurns(count(3), 3, (item) => seen.push(item))
  expect(seen).toEqual([0, 1, 2])
  await inTurns([], 3, () => seen.push('none'))
  expect(seen).toHaveLength(3)
})

test('the first failure ends it', async () => {
  const seen: number[] = []
  const failing = inTurns(count(9), 2, (item) => {
    if (item === 3) throw new Error('three')
    seen.push(item)
  })
  await expect(failing).rejects.toThrow('three')
  expect(seen).toEqual([0, 1, 2])
})

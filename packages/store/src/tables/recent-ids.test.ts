import { expect, test } from 'vitest'
import { joinTexts, rowKey } from './hashed-keys.ts'
import { RecentIds } from './recent-ids.ts'

const keyOf = (at: number): Buffer => rowKey(joinTexts('chat', 'bot', `id ${at}`))

test('the newest ids are remembered, the oldest are forgotten, and no other id passes for one of them', () => {
  const recent = new RecentIds()
  const known = (from: number, to: number): number => {
    let count = 0
    for (let at = from; at < to; at++) if (recent.has(keyOf(at))) count++
    return count
  }
  expect(recent.has(keyOf(0))).toBe(false)
  for (let at = 0; at < 40_000; at++) recent.add(keyOf(at))
  expect(known(0, 40_000)).toBeLessThanOrEqual(2048 * 8)
  expect(known(36_000, 40_000)).toBeGreaterThan(3900)
  expect(known(0, 4000)).toBeLessThan(100)
  expect(known(40_000, 44_000)).toBe(0)
})

test('an id that is added again takes no further room', () => {
  const recent = new RecentIds()
  for (let at = 0; at < 1000; at++) recent.add(keyOf(at))
  for (let again = 0; again < 100; again++) recent.add(keyOf(7))
  for (let at = 0; at < 1000; at++) expect(recent.has(keyOf(at))).toBe(true)
})

test('keys that differ in their last byte are different', () => {
  const recent = new RecentIds()
  const key = keyOf(1)
  recent.add(key)
  for (let byte = 0; byte < key.length; byte++) {
    const other = Buffer.from(key)
    other[byte] = (other[byte] ?? 0) ^ 1
    expect([byte, recent.has(other)]).toEqual([byte, false])
  }
})

test('after a clear nothing is known', () => {
  const recent = new RecentIds()
  recent.add(keyOf(1))
  recent.clear()
  expect(recent.has(keyOf(1))).toBe(false)
  recent.add(keyOf(2))
  expect([recent.has(keyOf(1)), recent.has(keyOf(2))]).toEqual([false, true])
})

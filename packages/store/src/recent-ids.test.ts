import { expect, test } from 'vitest'
import { RecentIds } from './recent-ids.ts'

test('recent ids are bounded by number and length, and the newest stay', () => {
  const recent = new RecentIds()
  for (let at = 0; at < 100_000; at++) recent.add(`id ${at}`)
  expect(recent.size).toBeLessThanOrEqual(16_000)
  for (const at of [99_999, 95_000]) expect(recent.has(`id ${at}`)).toBe(true)
  expect(recent.has('id 1')).toBe(false)
  recent.add('x'.repeat(257))
  expect(recent.has('x'.repeat(257))).toBe(false)
  recent.clear()
  expect([recent.size, recent.has('id 99999')]).toEqual([0, false])
})

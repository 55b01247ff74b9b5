import { expect, test } from 'vitest'
import { isOtherHandle, normaliseHandle } from './handle.ts'

test.each([
  ['+15550003333', '+15550003333'],
  ['15550003333', '+15550003333'],
  [' +1 (555) 000-3333 ', '+15550003333'],
  ['Ada@Example.COM', 'ada@example.com'],
  ['15550003333@example.com', '15550003333@example.com'],
  ['', ''],
  ['()', ''],
])('normalises %j to %j', (handle, normal) => {
  expect(normaliseHandle(handle)).toBe(normal)
  expect(normaliseHandle(normal)).toBe(normal)
})

test('does not turn a sender name with digits into a number', () => {
  for (const name of ['A15550003333', 'Bank 15550003333', '１５５５０００３３３３', 'tel:+15550003333']) {
    expect(normaliseHandle(name)).not.toBe('+15550003333')
  }
})

test.each(['ada@example.com', 'Bank', 'Taxi 4711', '12345'])('%s is a handle without a country code', (handle) => {
  expect(isOtherHandle(handle)).toBe(true)
})

test.each(['+15550003333', '15550003333', '01701234567', '', 'x'])('%j is not a handle without a country code', (handle) => {
  expect(isOtherHandle(handle)).toBe(false)
})

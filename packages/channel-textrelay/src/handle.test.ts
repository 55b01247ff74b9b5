import { expect, test } from 'vitest'
import { normaliseHandle } from './handle.ts'

test.each([
  ['+15550003333', '+15550003333'],
  ['15550003333', '+15550003333'],
  [' +1 (555) 000-3333 ', '+15550003333'],
  ['Ada@Example.COM', 'ada@example.com'],
  ['15550003333@example.com', '15550003333@example.com'],
  ['', ''],
  ['()', ''],
])('§5 rule 6 %j is known as %j', (handle, normal) => {
  expect(normaliseHandle(handle)).toBe(normal)
  expect(normaliseHandle(normal)).toBe(normal)
})

test('§5 rule 6 a sender name with digits in it does not pass for a number', () => {
  for (const name of ['A15550003333', 'Bank 15550003333', '１５５５０００３３３３', 'tel:+15550003333']) {
    expect(normaliseHandle(name)).not.toBe('+15550003333')
  }
})

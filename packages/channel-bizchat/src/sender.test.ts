import { expect, test } from 'vitest'
import { normaliseSender, recipientOf } from './sender.ts'

test.each([
  ['15550002222', '+15550002222'],
  ['+1 (555) 000-2222', '+15550002222'],
  [' 15550002222 ', '+15550002222'],
  ['US.15550002222', 'US.15550002222'],
  ['', ''],
])('§5 rule 6 %j is known as %j', (sender, normal) => {
  expect(normaliseSender(sender)).toBe(normal)
  expect(normaliseSender(normal)).toBe(normal)
})

test('§5 rule 6 an id with digits in it does not pass for a number', () => {
  for (const id of ['US.15550002222', 'a15550002222', '１５５５０００２２２２']) expect(normaliseSender(id)).not.toBe('+15550002222')
})

test('a recipient is a sender without its plus', () => {
  expect([recipientOf('+15550002222'), recipientOf('US.1')]).toEqual(['15550002222', 'US.1'])
})

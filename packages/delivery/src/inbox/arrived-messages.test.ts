import { expect, test } from 'vitest'
import { message } from '../testing/delivery-bench.ts'
import { ArrivedMessages } from './arrived-messages.ts'

test('the memory of arrived messages is bounded by their number and size, and the oldest stay', () => {
  const many = new ArrivedMessages()
  for (let number = 1; number <= 10_000; number++) many.add(number, message(`m${number}`))
  expect(many.size).toBeLessThanOrEqual(2000)
  expect(many.get(1)).toEqual(message('m1'))
  expect(many.get(10_000)).toBeUndefined()

  const large = new ArrivedMessages()
  const big = message('m', { text: 'x'.repeat(1_000_000) })
  for (let number = 1; number <= 10; number++) large.add(number, big)
  expect(large.size).toBe(3)
  for (let number = 1; number <= 10; number++) large.delete(number)
  expect(large.size).toBe(0)
  for (let number = 1; number <= 3; number++) large.add(number, big)
  expect(large.size).toBe(3)
})

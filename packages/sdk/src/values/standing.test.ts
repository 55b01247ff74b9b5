/** The order of standings. */
import { expect, test } from 'vitest'
import { isAtLeast, lowestStanding, STANDINGS } from './standing.ts'

test('orders the standings from operator to unverified', () => {
  expect(STANDINGS).toEqual(['operator', 'client', 'listed', 'stranger', 'unverified'])
  expect(STANDINGS.filter((standing) => isAtLeast(standing, 'listed'))).toEqual(['operator', 'client', 'listed'])
})

test('returns the lowest standing, in any order of the arguments', () => {
  expect(lowestStanding('operator')).toBe('operator')
  expect(lowestStanding('operator', 'stranger', 'client')).toBe('stranger')
  expect(lowestStanding('unverified', 'operator')).toBe('unverified')
})

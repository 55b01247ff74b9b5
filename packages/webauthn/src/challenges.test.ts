import { testClock } from '@sluice/testkit/clock'
import { expect, test } from 'vitest'
import { createChallenges } from './challenges.ts'

const arrange = (limits = { principalsMax: 4, perPrincipalMax: 3 }) => {
  const clock = testClock()
  return { clock, challenges: createChallenges<string>({ clock, ...limits }) }
}

test('a challenge is 32 random bytes, good once', () => {
  const { challenges } = arrange()
  const challenge = challenges.issue('a', 'purpose')
  expect(Buffer.from(challenge, 'base64url')).toHaveLength(32)
  expect(challenges.issue('a', 'other')).not.toBe(challenge)
  expect(challenges.take('a', challenge)).toBe('purpose')
  expect(challenges.take('a', challenge)).toBeUndefined()
})

test('a challenge is good for five minutes, and no longer', async () => {
  const { challenges, clock } = arrange()
  const [one, other] = [challenges.issue('a', 'one'), challenges.issue('a', 'other')]
  await clock.advance(299_999)
  expect(challenges.take('a', one)).toBe('one')
  await clock.advance(1)
  expect(challenges.take('a', other)).toBeUndefined()
})

test('nobody else can use a challenge, nor use it up', () => {
  const { challenges } = arrange()
  const challenge = challenges.issue('a', 'purpose')
  challenges.issue('b', 'purpose')
  expect(challenges.take('b', challenge)).toBeUndefined()
  expect(challenges.take('', challenge)).toBeUndefined()
  expect(challenges.take('a', challenge)).toBe('purpose')
})

test('too many challenges of one principal cost that one its oldest, and nobody else any', () => {
  const { challenges } = arrange()
  const others = challenges.issue('b', 'b')
  const own = ['1', '2', '3', '4'].map((purpose) => challenges.issue('a', purpose))
  expect(own.map((challenge) => challenges.take('a', challenge))).toEqual([undefined, '2', '3', '4'])
  expect(challenges.take('b', others)).toBe('b')
})

test('too many principals cost the first of them its challenges', () => {
  const { challenges } = arrange()
  const issued = ['a', 'b', 'c', 'd', 'e'].map((who) => [who, challenges.issue(who, who)] as const)
  expect(issued.map(([who, challenge]) => challenges.take(who, challenge))).toEqual([undefined, 'b', 'c', 'd', 'e'])
})

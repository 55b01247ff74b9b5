import { testClock } from '@sluice/testkit/clock'
import { describe, expect, test } from 'vitest'
import { Challenges } from './challenges.ts'

const arrange = (limits = { principalsMax: 4, perPrincipalMax: 3 }) => {
  const clock = testClock()
  return { clock, challenges: new Challenges<string>(clock, limits) }
}

describe('Challenges', () => {
  test('issues 32 random bytes that are valid once', () => {
    const { challenges } = arrange()
    const challenge = challenges.issue('a', 'purpose')
    expect(Buffer.from(challenge, 'base64url')).toHaveLength(32)
    expect(challenges.issue('a', 'other')).not.toBe(challenge)
    expect(challenges.take('a', challenge)).toBe('purpose')
    expect(challenges.take('a', challenge)).toBeUndefined()
  })

  test('expires a challenge after five minutes', async () => {
    const { challenges, clock } = arrange()
    const [one, other] = [challenges.issue('a', 'one'), challenges.issue('a', 'other')]
    await clock.advance(299_999)
    expect(challenges.take('a', one)).toBe('one')
    await clock.advance(1)
    expect(challenges.take('a', other)).toBeUndefined()
  })

  test('does not give a challenge to another principal, nor consume it', () => {
    const { challenges } = arrange()
    const challenge = challenges.issue('a', 'purpose')
    challenges.issue('b', 'purpose')
    expect(challenges.take('b', challenge)).toBeUndefined()
    expect(challenges.take('', challenge)).toBeUndefined()
    expect(challenges.take('a', challenge)).toBe('purpose')
  })

  test('drops the oldest challenge of a principal that has too many', () => {
    const { challenges } = arrange()
    const others = challenges.issue('b', 'b')
    const own = ['1', '2', '3', '4'].map((purpose) => challenges.issue('a', purpose))
    expect(own.map((challenge) => challenges.take('a', challenge))).toEqual([undefined, '2', '3', '4'])
    expect(challenges.take('b', others)).toBe('b')
  })

  test('drops the challenges of the oldest principal beyond the limit', () => {
    const { challenges } = arrange()
    const issued = ['a', 'b', 'c', 'd', 'e'].map((principal) => [principal, challenges.issue(principal, principal)] as const)
    expect(issued.map(([principal, challenge]) => challenges.take(principal, challenge))).toEqual([undefined, 'b', 'c', 'd', 'e'])
  })
})

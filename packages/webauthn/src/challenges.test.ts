import { testClock } from '@sluice/testkit/clock'
import { describe, expect, test } from 'vitest'
import { Challenges } from './challenges.ts'

const arrange = (limits = { principalsMax: 4, perPrincipalMax: 3 }) => {
  const clock = testClock()
  return { clock, challenges: new Challenges<string>({ clock, service: () => undefined }, 'test', limits) }
}

describe('Challenges', () => {
  test('issues 32 random bytes that are valid once', async () => {
    const { challenges } = arrange()
    const challenge = await challenges.issue('a', 'purpose')
    expect(Buffer.from(challenge, 'base64url')).toHaveLength(32)
    expect(await challenges.issue('a', 'other')).not.toBe(challenge)
    expect(await challenges.take('a', challenge)).toBe('purpose')
    expect(await challenges.take('a', challenge)).toBeUndefined()
  })

  test('expires a challenge after five minutes', async () => {
    const { challenges, clock } = arrange()
    const [one, other] = [await challenges.issue('a', 'one'), await challenges.issue('a', 'other')]
    await clock.advance(299_999)
    expect(await challenges.take('a', one)).toBe('one')
    await clock.advance(1)
    expect(await challenges.take('a', other)).toBeUndefined()
  })

  test('does not give a challenge to another principal, nor consume it', async () => {
    const { challenges } = arrange()
    const challenge = await challenges.issue('a', 'purpose')
    await challenges.issue('b', 'purpose')
    expect(await challenges.take('b', challenge)).toBeUndefined()
    expect(await challenges.take('', challenge)).toBeUndefined()
    expect(await challenges.take('a', challenge)).toBe('purpose')
  })

  test('drops the oldest challenge of a principal that has too many', async () => {
    const { challenges } = arrange()
    const others = await challenges.issue('b', 'b')
    const own: string[] = []
    for (const purpose of ['1', '2', '3', '4']) own.push(await challenges.issue('a', purpose))
    expect(await Promise.all(own.map((challenge) => challenges.take('a', challenge)))).toEqual([undefined, '2', '3', '4'])
    expect(await challenges.take('b', others)).toBe('b')
  })

  test('drops the challenges of the oldest principal beyond the limit', async () => {
    const { challenges } = arrange()
    const issued: (readonly [string, string])[] = []
    for (const principal of ['a', 'b', 'c', 'd', 'e']) issued.push([principal, await challenges.issue(principal, principal)])
    expect(await Promise.all(issued.map(([principal, challenge]) => challenges.take(principal, challenge)))).toEqual([
      undefined,
      'b',
      'c',
      'd',
      'e',
    ])
  })
})

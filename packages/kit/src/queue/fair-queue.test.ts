import { describe, expect, test } from 'vitest'
import { FairQueue } from './fair-queue.ts'

/** The members in the order in which they leave the queue. */
function drained(queue: FairQueue<string>): string[] {
  const members: string[] = []
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) members.push(next)
  return members
}

describe('FairQueue', () => {
  test('is first-in first-out for one group', () => {
    const queue = new FairQueue<string>()
    for (const member of ['1', '2', '3']) queue.push('a', member)
    expect(queue.firstOf('a')).toBe('1')
    expect(drained(queue)).toEqual(['1', '2', '3'])
    expect(queue.isEmpty).toBe(true)
  })

  test('lets groups take turns', () => {
    const queue = new FairQueue<string>()
    for (const member of ['a1', 'a2', 'a3']) queue.push('a', member)
    queue.push('b', 'b1')
    expect(queue.shift()).toBe('a1')
    queue.push('c', 'c1')
    expect(drained(queue)).toEqual(['b1', 'a2', 'c1', 'a3'])
  })

  test('lets members leave from anywhere, and forgets empty groups', () => {
    const queue = new FairQueue<string>()
    const [first, second] = [queue.push('a', 'a1'), queue.push('a', 'a2')]
    const only = queue.push('b', 'b1')
    queue.push('c', 'c1')
    queue.remove(second)
    queue.remove(only)
    expect([queue.firstOf('a'), queue.firstOf('b')]).toEqual(['a1', undefined])
    queue.remove(first)
    queue.push('a', 'a3')
    expect(drained(queue)).toEqual(['c1', 'a3'])
  })
})

import { processorMs } from '@sluice/testkit/processor-time'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { covers } from './testing/covers.ts'
import { widestFilters } from './widest-filters.ts'

describe('widestFilters', () => {
  it.each([
    ['a/b', 'a/b', true],
    ['a/+', 'a/b', true],
    ['a/+', 'a/+', true],
    ['a/+', 'a', false],
    ['a/+', 'a/b/c', false],
    ['a/+', 'a/#', false],
    ['a/#', 'a', true],
    ['a/#', 'a/b/c', true],
    ['a/#', 'a/+/c/#', true],
    ['a/#', 'b', false],
    ['+/b', 'a/b', true],
    ['a/b', 'a/+', false],
    ['#', 'a/b', true],
    ['#', '#', true],
    ['#', '$SYS/x', false],
    ['+/x', '$SYS/x', false],
    ['$SYS/#', '$SYS/x', true],
  ])('knows whether %s covers %s: %s', (wide, narrow, expected) => {
    expect(covers(wide, narrow)).toBe(expected)
    expect(widestFilters([wide, narrow])).not.toContain(expected && wide !== narrow ? narrow : undefined)
    expect(widestFilters([narrow, wide])).toContain(expected ? wide : narrow)
  })

  it('handles 20,000 filters in time', () => {
    const filters = Array.from({ length: 20_000 }, (_, number) => (number % 2 ? `site-${number}/+/alarm` : `machines/${number}/heat`))
    const beforeMs = processorMs()
    expect(widestFilters([...filters, 'machines/#'])).toHaveLength(10_001)
    expect(processorMs() - beforeMs).toBeLessThan(5000)
  })

  it('omits covered filters in any order', () => {
    expect(widestFilters(['a/b', 'x/+/z', 'a/#', 'a/+/c', 'x/y/z', 'a/#'])).toEqual(['a/#', 'x/+/z'])
    expect(widestFilters(['b', 'a'])).toEqual(['a', 'b'])
  })

  const level = fc.constantFrom('a', 'b', '')
  const topic = fc.array(level, { minLength: 1, maxLength: 4 }).map((levels) => levels.join('/'))
  const filter = fc
    .tuple(fc.array(fc.constantFrom('a', 'b', '', '+'), { minLength: 1, maxLength: 4 }), fc.boolean())
    .map(([levels, isOpen]) => [...levels, ...(isOpen ? ['#'] : [])].join('/'))

  it('matches the same topics as all filters together', () => {
    fc.assert(
      fc.property(fc.array(filter, { maxLength: 6 }), topic, (filters, name) => {
        const matches = (some: readonly string[]) => some.some((one) => covers(one, name))
        expect(matches(widestFilters(filters))).toBe(matches(filters))
      }),
    )
  })
  it('keeps exactly the filters that no other filter covers', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.oneof(filter, fc.constantFrom('#', '$SYS/+', '$SYS/#', '$SYS/a')), { maxLength: 8 }), (filters) => {
        const uncovered = filters.filter((one) => !filters.some((other) => other !== one && covers(other, one)))
        expect(widestFilters(filters)).toEqual(uncovered.sort())
      }),
    )
  })
})

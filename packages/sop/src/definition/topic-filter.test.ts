import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { filterProblem, TopicFilters } from './topic-filter.ts'

function matches(filter: string, topic: string): boolean {
  const filters = new TopicFilters<string>()
  filters.add(filter, filter)
  return filters.match(topic).length === 1
}

/** A second implementation of the rules of MQTT 5.0, section 4.7, level by level. */
function matchesByRule(filter: string, topic: string): boolean {
  if (topic.startsWith('$') && /^[+#]/.test(filter)) return false
  const follow = ([wanted, ...wantedRest]: string[], [level, ...rest]: string[]): boolean => {
    if (wanted === '#') return true
    if (wanted === undefined || level === undefined) return wanted === level
    return (wanted === '+' || wanted === level) && follow(wantedRest, rest)
  }
  return follow(filter.split('/'), topic.split('/'))
}

describe('MQTT topic filters', () => {
  test.each<[string, string, boolean]>([
    ['a/b', 'a/b', true],
    ['a/b', 'a/B', false],
    ['a/b', 'a/b/', false],
    ['a/+', 'a/b', true],
    ['a/+', 'a/', true],
    ['a/+', 'a', false],
    ['a/+', 'a/b/c', false],
    ['+/b', '/b', true],
    ['+', 'a', true],
    ['a/#', 'a', true],
    ['a/#', 'a/', true],
    ['a/#', 'a/b/c', true],
    ['a/#', 'ab', false],
    ['#', 'a/b', true],
    ['#', '', true],
    ['+/#', 'a', true],
    ['a/+/c/#', 'a/b/c', true],
    ['#', '$SYS/uptime', false],
    ['+/uptime', '$SYS/uptime', false],
    ['$SYS/#', '$SYS/uptime', true],
    ['$SYS/+', '$SYS/uptime', true],
    ['a/#', 'a/$b', true],
  ])('%s and %j: %s', (filter, topic, expected) => {
    expect(matches(filter, topic)).toBe(expected)
    expect(matchesByRule(filter, topic)).toBe(expected)
  })

  test.each([
    ['', 'at least one character'],
    ['a/b#', 'a whole level'],
    ['a/+b/c', 'a whole level'],
    ['a/#/b', 'must be the last one'],
    ['a\0b', 'null character'],
    ['$share/group/a', 'a shared subscription'],
    ['x'.repeat(65_536), 'at most 65535 bytes'],
  ])('are refused when invalid: %.20j', (filter, message) => {
    expect(filterProblem(filter)).toContain(message)
  })

  test('match together as each one does alone', () => {
    const level = fc.constantFrom('a', 'b', '', '$x', '+')
    const filter = fc
      .tuple(fc.array(level, { minLength: 1, maxLength: 4 }), fc.boolean())
      .map(([levels, isOpen]) => [...levels, ...(isOpen ? ['#'] : [])].join('/'))
      .filter((text) => filterProblem(text) === undefined)
    const topic = fc.array(fc.constantFrom('a', 'b', '', '$x'), { minLength: 1, maxLength: 5 }).map((levels) => levels.join('/'))
    fc.assert(
      fc.property(fc.array(filter, { maxLength: 20 }), topic, (filters, name) => {
        const together = new TopicFilters<string>()
        for (const text of filters) together.add(text, text)
        expect(together.match(name).sort()).toEqual(filters.filter((text) => matchesByRule(text, name)).sort())
      }),
      { numRuns: 500 },
    )
  })
})

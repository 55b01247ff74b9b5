import { processorMs } from '@sluice/testkit/processor-time'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { EventPayload, holds, type Operator, parseCondition, unmet } from './condition.ts'

const check = (condition: string, payload: unknown) =>
  holds(parseCondition(condition), typeof payload === 'string' ? payload : JSON.stringify(payload))

describe('conditions', () => {
  test.each<[string, unknown, boolean]>([
    ['$.temp > 5', { temp: 6 }, true],
    ['$.temp > 5', { temp: 5 }, false],
    ['$.temp >= 5', { temp: '5.0' }, true],
    ['$.temp<5', { temp: -1e3 }, true],
    ['$.temp <= 5', { temp: 10 }, false],
    ['$.temp == 0.3', { temp: 0.1 + 0.2 }, true],
    ['$.temp != 0.3', { temp: 0.1 + 0.2 }, false],
    ['$.a.b.1 == "x"', { a: { b: ['y', 'x'] } }, true],
    ['$.0 == 1', [1], true],
    ['$.a.0 == 1', { a: { 0: 1 } }, true],
    ['$.text == done', { text: 'done' }, true],
    ['$.text == "two words"', { text: 'two words' }, true],
    ['$.text == two words', { text: 'two words' }, true],
    ['$.text == "a >= b"', { text: 'a >= b' }, true],
    ['$.text == a >= b', { text: 'a >= b' }, true],
    ['$.text == "say \\"hi\\""', { text: 'say "hi"' }, true],
    ['$.text == "\'tis"', { text: "'tis" }, true],
    ['$.text > apple', { text: 'banana' }, true],
    ['$.text > 5', { text: 'banana' }, true],
    ['$.ok == true', { ok: true }, true],
    ['$.ok == "true"', { ok: true }, true],
    ['$.ok != true', { ok: false }, true],
    ['$.none == ""', { none: null }, true],
    ['$ == 7', '7', true],
    ['$ == "up"', '"up"', true],
    ['> 5', '6', true],
    ['> 5', ' 6.5\n', true],
    ['>5', '5', false],
  ])('%s of %j: %s', (condition, payload, expected) => {
    expect(check(condition, payload)).toBe(expected)
  })

  test.each<[string, string | null, string]>([
    ['$.a != 5', null, 'no_payload'],
    ['!= 5', '', 'no_payload'],
    ['$.a != 5', 'not json', 'not_json'],
    ['$.a != 5', '{"b":1}', 'not_there'],
    ['$.a.b != 5', '{"a":"text"}', 'not_there'],
    ['$.a.length != 5', '{"a":[1]}', 'not_there'],
    ['$.constructor != 5', '{}', 'not_there'],
    ['$.__proto__ != 5', '{}', 'not_there'],
    ['$.a.01 == 5', '{"a":[1,5]}', 'not_there'],
    ['$.a != 5', '{"a":{}}', 'not_comparable'],
    ['$.a != 5', '{"a":[5]}', 'not_comparable'],
    ['$ != 5', '{}', 'not_comparable'],
    ['!= 5', 'five', 'not_comparable'],
    ['!= 5', '"6"', 'not_comparable'],
    ['!= 5', 'Infinity', 'not_comparable'],
    ['$.a == 5', '{"a":6}', 'differs'],
  ])('do not hold when the values cannot be compared, whatever the operator: %s of %j', (condition, payload, why) => {
    expect(unmet(parseCondition(condition), new EventPayload(payload))).toBe(why)
  })

  test.each([
    ['', 'looks like'],
    ['$.a', 'looks like'],
    ['$.a = 5', 'looks like'],
    ['a == 5', 'looks like'],
    ['$a == 5', 'looks like'],
    ['$.a..b == 5', 'looks like'],
    ['$.a b == 5', 'looks like'],
    ['$."a b" == 5', 'looks like'],
    ['$.a ==', 'a value is missing'],
    ['> ', 'a value is missing'],
    ['$.a == "open', 'the quoted text is incomplete'],
    ['$.a == "x" && $.b == "y"', 'the quoted text is incomplete'],
    ["$.a == 'open'", 'must be in double quotes'],
    ["$.a != ''", 'must be in double quotes'],
    ['$.a == “open”', 'must be in double quotes'],
    ['$.a === 5', 'must be in double quotes'],
    ['$.a <> 5', 'must be in double quotes'],
    ['== up', 'the value must be a number'],
    [`$.a == ${'x'.repeat(1000)}`, 'longer than 1000'],
  ])('are refused when malformed: %j', (text, message) => {
    expect(() => parseCondition(text)).toThrow(new RegExp(message))
  })

  const operators = fc.constantFrom<Operator>('>=', '<=', '!=', '==', '>', '<')

  const words = fc.string().map((text) => `x${text}`)

  test('compare any texts as they are, even with operators inside', () => {
    fc.assert(
      fc.property(words, words, (wanted, found) => {
        const of = (operator: Operator) => check(`$.a ${operator} ${JSON.stringify(wanted)}`, { a: found })
        expect([of('=='), of('<'), of('>')]).toEqual([found === wanted, found < wanted, found > wanted])
        expect([of('!='), of('>='), of('<=')]).toEqual([!of('=='), !of('<'), !of('>')])
      }),
    )
  })

  test('put any two numbers in exactly one order', () => {
    const numbers = fc.double({ noNaN: true, noDefaultInfinity: true })
    fc.assert(
      fc.property(numbers, numbers, (wanted, found) => {
        const of = (operator: Operator) => check(`$.a ${operator} ${wanted}`, { a: found })
        expect([of('<'), of('=='), of('>')].filter(Boolean)).toHaveLength(1)
        expect([of('<='), of('>='), of('!=')]).toEqual([!of('>'), !of('<'), !of('==')])
        expect(of('<')).toBe(found < wanted && wanted - found >= Number.EPSILON)
      }),
    )
  })

  test('accept any payload, and parse or refuse any text', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.json(), fc.string()),
        fc.array(fc.stringMatching(/^[a-z0-9_]{1,3}$/), { maxLength: 3 }),
        operators,
        (payload, path, operator) => {
          expect(typeof holds(parseCondition(`${['$', ...path].join('.')} ${operator} x`), payload)).toBe('boolean')
        },
      ),
    )
    fc.assert(
      fc.property(fc.string(), fc.string(), (text, payload) => {
        try {
          expect(typeof holds(parseCondition(text), payload)).toBe('boolean')
        } catch (error) {
          expect(error).toBeInstanceOf(SyntaxError)
        }
      }),
    )
  })

  test('reject in linear time long digits that are not a number', () => {
    const digits = `${'1'.repeat(65_535)}x`
    const startedAtMs = processorMs()
    expect(check('$.a >= 5', { a: digits })).toBe(false)
    expect(holds(parseCondition('>= 5'), digits)).toBe(false)
    expect(processorMs() - startedAtMs).toBeLessThan(1000)
  })
})

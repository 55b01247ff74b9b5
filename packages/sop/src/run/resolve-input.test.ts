import { describe, expect, test } from 'vitest'
import { jsonOrText } from '../definition/json-text.ts'
import { resolveInput } from './resolve-input.ts'

const values = { before: { id: 7, list: ['a', { b: null }], 'odd key': 1 }, event: { ref: 'main', $: 'money' } }

describe('resolveInput', () => {
  test('returns the previous value without a template', () => {
    expect(resolveInput(null, values)).toBe(values.before)
  })

  test.each([
    ['$', values.before],
    ['$.id', 7],
    ['$.list.0', 'a'],
    ['$.list.1.b', null],
    ['$event', values.event],
    ['$event.ref', 'main'],
    ['$event.$', 'money'],
    ['costs $.id', 'costs $.id'],
    ['$events.ref', '$events.ref'],
    ['$ .id', '$ .id'],
    ['', ''],
  ])('resolves %j to %j', (text, stands) => {
    expect(resolveInput({ deep: [text] }, values)).toEqual({ deep: [stands] })
  })

  test.each(['$.nothing', '$.id.more', '$event.nothing', '$.list.2', '$.constructor', '$.__proto__'])(
    'refuses %s, which names no value',
    (text) => {
      expect(() => resolveInput({ x: text }, values)).toThrow(
        expect.objectContaining({ code: 'invalid_request', message: expect.stringContaining(text) }),
      )
    },
  )

  test('does not resolve the keys of the template', () => {
    expect(resolveInput({ $: 1, '$.id': '$.id' }, values)).toEqual({ $: 1, '$.id': 7 })
  })
})

describe('jsonOrText', () => {
  test('returns overly nested JSON as text', () => {
    const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
    expect(jsonOrText(nested(64))).toEqual(JSON.parse(nested(64)))
    expect(jsonOrText(nested(65))).toBe(nested(65))
    expect(jsonOrText(nested(30_000))).toBe(nested(30_000))
  })

  test('parses JSON and returns any other text unchanged', () => {
    expect(jsonOrText('{"a":1}')).toEqual({ a: 1 })
    expect(jsonOrText('Wrote 3 bytes')).toBe('Wrote 3 bytes')
    expect(jsonOrText(null)).toBeNull()
  })
})

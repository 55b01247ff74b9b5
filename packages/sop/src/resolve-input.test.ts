import { describe, expect, test } from 'vitest'
import { jsonOrText, resolveInput } from './resolve-input.ts'

const values = { before: { id: 7, list: ['a', { b: null }], 'odd key': 1 }, event: { ref: 'main', $: 'money' } }

describe('the input of a deterministic step', () => {
  test('without a template is the value before', () => {
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
  ])('the text %j stands for %j', (text, stands) => {
    expect(resolveInput({ deep: [text] }, values)).toEqual({ deep: [stands] })
  })

  test.each(['$.nothing', '$.id.more', '$event.nothing', '$.list.2', '$.constructor', '$.__proto__'])(
    '%s names nothing, and says so',
    (text) => {
      expect(() => resolveInput({ x: text }, values)).toThrow(
        expect.objectContaining({ code: 'invalid_request', message: expect.stringContaining(text) }),
      )
    },
  )

  test('takes keys of the template as they are', () => {
    expect(resolveInput({ $: 1, '$.id': '$.id' }, values)).toEqual({ $: 1, '$.id': 7 })
  })
})

test('what is nested deeper than code can walk stands for itself, as a text', () => {
  const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
  expect(jsonOrText(nested(64))).toEqual(JSON.parse(nested(64)))
  expect(jsonOrText(nested(65))).toBe(nested(65))
  expect(jsonOrText(nested(30_000))).toBe(nested(30_000))
})

test('what is JSON is read, what is not stands for itself', () => {
  expect(jsonOrText('{"a":1}')).toEqual({ a: 1 })
  expect(jsonOrText('Wrote 3 bytes')).toBe('Wrote 3 bytes')
  expect(jsonOrText(null)).toBeNull()
})

import { describe, expect, test } from 'vitest'
import { list, members, parsedOrUndefined, parseJson, parseObject, text, textAt, valueAt } from './foreign-json.ts'

const bytes = (json: string) => new TextEncoder().encode(json)
const BROKEN = [Uint8Array.of(0x22, 0xff, 0x22), bytes('{'), bytes('')]

describe('JSON that somebody else made', () => {
  test('a body that is not UTF-8 or no JSON is refused, without a word of it', () => {
    for (const body of BROKEN) {
      for (const parse of [parseJson, parseObject]) {
        expect(() => parse(body)).toThrow(expect.objectContaining({ code: 'invalid_request', message: 'Invalid JSON payload' }))
      }
    }
    expect(parseJson(bytes('[1]'))).toEqual([1])
  })

  test('an object is asked for where only an object will do', () => {
    expect(parseObject(bytes('{"a":1}'))).toEqual({ a: 1 })
    for (const json of ['[]', 'null', '1', '"a"']) expect(() => parseObject(bytes(json))).toThrow('Invalid JSON payload')
  })

  test('what may be no JSON is undefined if it is none', () => {
    for (const body of BROKEN) expect(parsedOrUndefined(body)).toBeUndefined()
    expect(parsedOrUndefined('{')).toBeUndefined()
    expect(parsedOrUndefined('{"a":1}')).toEqual(parsedOrUndefined(bytes('{"a":1}')))
  })

  test('what is missing or of another kind is empty', () => {
    for (const value of [undefined, null, 1, true]) {
      expect([members(value), list(value), text(value), valueAt(value, 'a.b'), textAt(value, 'a')]).toEqual([{}, [], '', undefined, ''])
    }
  })

  test('a path leads through objects and not through lists', () => {
    const json = { a: { b: 'deep' }, blank: ' ', list: [{ b: 'no' }] }
    expect(valueAt(json, 'a.b')).toBe('deep')
    expect(valueAt(json, 'list.0.b')).toBeUndefined()
    expect(textAt(json, 'blank', 'list.0.b', 'a.b')).toBe('deep')
  })
})

import { describe, expect, test } from 'vitest'
import { list, members, parsedOrUndefined, parseJson, parseObject, text, textAt, valueAt, wordsIn } from './foreign-json.ts'

const bytes = (json: string) => new TextEncoder().encode(json)
const BROKEN = [Uint8Array.of(0x22, 0xff, 0x22), bytes('{'), bytes('')]

describe('JSON of unknown shape', () => {
  test('rejects a body that is not JSON in UTF-8, without quoting it', () => {
    for (const body of BROKEN) {
      for (const parse of [parseJson, parseObject]) {
        expect(() => parse(body)).toThrow(expect.objectContaining({ code: 'invalid_request', message: 'Invalid JSON payload' }))
      }
    }
    expect(parseJson(bytes('[1]'))).toEqual([1])
  })

  test('parseObject rejects JSON that is not an object', () => {
    expect(parseObject(bytes('{"a":1}'))).toEqual({ a: 1 })
    for (const json of ['[]', 'null', '1', '"a"']) expect(() => parseObject(bytes(json))).toThrow('Invalid JSON payload')
  })

  test('parsedOrUndefined returns undefined for other text', () => {
    for (const body of BROKEN) expect(parsedOrUndefined(body)).toBeUndefined()
    expect(parsedOrUndefined('{')).toBeUndefined()
    expect(parsedOrUndefined('{"a":1}')).toEqual(parsedOrUndefined(bytes('{"a":1}')))
  })

  test('reads missing members and other types as empty', () => {
    for (const value of [undefined, null, 1, true]) {
      expect([members(value), list(value), text(value), valueAt(value, 'a.b'), textAt(value, 'a')]).toEqual([{}, [], '', undefined, ''])
    }
  })

  test('valueAt enters objects and no lists', () => {
    const json = { a: { b: 'deep' }, blank: ' ', list: [{ b: 'no' }] }
    expect(valueAt(json, 'a.b')).toBe('deep')
    expect(valueAt(json, 'list.0.b')).toBeUndefined()
    expect(textAt(json, 'blank', 'list.0.b', 'a.b')).toBe('deep')
  })

  test('wordsIn finds the words of a content at the usual names, and ends', () => {
    const deep: Record<string, unknown> = { title: 'deep' }
    deep.content = deep
    expect(wordsIn({ title: ' Lunch? ', options: ['Soup', { text: 'Salad' }], count: 2, id: 'x1' })).toBe('Lunch? Soup Salad')
    expect(wordsIn(deep).split(' ').length).toBeLessThanOrEqual(500)
    for (const value of [undefined, null, 1, 'words', []]) expect(wordsIn(value)).toBe('')
  })
})

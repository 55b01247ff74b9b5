import { AppError } from '@sluice/sdk'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseHex } from './parse-hex.ts'

const FLASH = { start: 0, length: 0x8000 }
const parse = (text: string) => parseHex(Buffer.from(text), FLASH)
const record = (address: number, kind: number, data: number[]) => {
  const bytes = [data.length, address >> 8, address & 0xff, kind, ...data]
  const sum = (256 - (bytes.reduce((total, byte) => total + byte, 0) % 256)) % 256
  return `:${Buffer.from([...bytes, sum])
    .toString('hex')
    .toUpperCase()}`
}
const END = ':00000001FF'

describe('parseHex', () => {
  test('accepts an image within flash', () => {
    expect(parse(`${record(0, 0, [1, 2, 3])}\r\n${record(0, 3, [0, 0, 0, 0])}\n${record(0x7ffe, 0, [1, 2])}\n${END}\n`)).toEqual({
      bytes: 5,
    })
  })

  test.each([
    ['an empty file', '', 'line 1'],
    ['another text', 'hello', 'not a record'],
    ['an image without data', END, 'without data'],
    ['an image without an end', record(0, 0, [1]), 'not an end record'],
    ['a wrong checksum', `:0100000001FF\n${END}`, 'checksum'],
    ['a wrong length', `:0200000001FE\n${END}`, 'stated length'],
    ['data behind flash', `${record(0x7fff, 0, [1, 2])}\n${END}`, 'outside'],
    ['a segment behind flash', `${record(0, 2, [0x08, 0])}\n${record(0, 0, [1])}\n${END}`, 'outside'],
    ['an address behind flash', `${record(0, 4, [0, 1])}\n${record(0, 0, [1])}\n${END}`, 'outside'],
    ['more after the end', `${record(0, 0, [1])}\n${END}\n${END}`, 'follows the end'],
    ['an unknown type', `${record(0, 9, [1])}\n${END}`, 'type 9'],
  ])('refuses %s', (_, text, says) => {
    expect(() => parse(text)).toThrow(expect.objectContaining({ code: 'invalid_request', message: expect.stringContaining(says) }))
  })

  test('throws an AppError for arbitrary bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        expect(() => parseHex(bytes, FLASH)).toThrow(AppError)
      }),
    )
  })
})

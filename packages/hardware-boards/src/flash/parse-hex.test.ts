import { AppError } from '@sluice/sdk'
import fc from 'fast-check'
import { expect, test } from 'vitest'
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

test('an image within flash passes', () => {
  expect(parse(`${record(0, 0, [1, 2, 3])}\r\n${record(0, 3, [0, 0, 0, 0])}\n${record(0x7ffe, 0, [1, 2])}\n${END}\n`)).toEqual({ bytes: 5 })
})

test.each([
  ['nothing', '', 'line 1'],
  ['something else', 'hello', 'no record'],
  ['no data', END, 'without data'],
  ['no end', record(0, 0, [1]), 'no end'],
  ['a wrong sum', `:0100000001FF\n${END}`, 'sum'],
  ['a wrong length', `:0200000001FE\n${END}`, 'shorter'],
  ['data behind flash', `${record(0x7fff, 0, [1, 2])}\n${END}`, 'outside'],
  ['a segment behind flash', `${record(0, 2, [0x08, 0])}\n${record(0, 0, [1])}\n${END}`, 'outside'],
  ['an address behind flash', `${record(0, 4, [0, 1])}\n${record(0, 0, [1])}\n${END}`, 'outside'],
  ['more behind the end', `${record(0, 0, [1])}\n${END}\n${END}`, 'behind the end'],
  ['a kind nobody knows', `${record(0, 9, [1])}\n${END}`, 'kind 9'],
])('%s is no image for the board', (_, text, says) => {
  expect(() => parse(text)).toThrow(expect.objectContaining({ code: 'invalid_request', message: expect.stringContaining(says) }))
})

test('no bytes whatever do more than refuse', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      expect(() => parseHex(bytes, FLASH)).toThrow(AppError)
    }),
  )
})

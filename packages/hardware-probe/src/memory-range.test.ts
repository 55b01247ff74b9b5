import { boardNamed } from '@sluice/hardware'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseAddress, wordsWithin } from './memory-range.ts'

const board = boardNamed('board_c1')
if (!board) throw new Error('board_c1 is missing in the table of boards')

describe('parseAddress', () => {
  test.each([
    ['0x20000000', 0x20000000],
    ['0X08000010', 0x08000010],
    ['536870912', 0x20000000],
    [' 0x0 ', 0],
    ['0xFFFFFFFF', 0xffffffff],
    ['4294967295', 0xffffffff],
  ])('parses %s', (text, address) => {
    expect(parseAddress(text)).toBe(address)
  })

  test.each([
    '',
    ' ',
    'ram',
    '0x',
    '0x2000_0000',
    '0x20000000g',
    '-1',
    '+1',
    '1e9',
    '1.5',
    '4294967296',
    '0x100000000',
    '20000000h',
    '０x20',
  ])('rejects %j', (text) => {
    expect(() => parseAddress(text)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
  })
})

describe('wordsWithin', () => {
  test('returns the whole words around a range', () => {
    expect(wordsWithin(board, 0x20000001, 5)).toEqual({ address: 0x20000000, length: 8, width: 4 })
    expect(wordsWithin(board, 0x20000000, 256)).toEqual({ address: 0x20000000, length: 256, width: 4 })
  })

  test.each([
    [0x20017f00, 256],
    [0x0807fffc, 4],
    [0x20017fff, 1],
  ])('accepts a range at the end of a memory: 0x%x, %i', (address, length) => {
    expect(wordsWithin(board, address, length).width).toBe(4)
  })

  test.each([
    [0x20017f01, 256],
    [0x20018000, 1],
    [0x0807ffff, 2],
    [0x07ffffff, 4],
    [0xe0042000, 4],
    [0x40020000, 4],
    [0, 4],
    [0xfffffffc, 8],
  ])('refuses a range outside the memory of the board: 0x%x, %i', (address, length) => {
    expect(() => wordsWithin(board, address, length)).toThrow(/Flash 0x08000000 to 0x0807FFFF, RAM 0x20000000 to 0x20017FFF/)
  })

  test('never returns a block outside the memory of the board', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 0xffffffff }), fc.integer({ min: 1, max: 256 }), (address, length) => {
        try {
          const block = wordsWithin(board, address, length)
          const isInside = board.memory.some(
            ({ start, length: size }) => block.address >= start && block.address + block.length <= start + size,
          )
          expect([isInside, block.address % 4, block.length % 4]).toEqual([true, 0, 0])
        } catch (error) {
          expect(error).toMatchObject({ code: 'invalid_request' })
        }
      }),
    )
  })
})

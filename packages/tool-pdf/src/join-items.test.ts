import { describe, expect, test } from 'vitest'
import { joinItems, type TextPiece } from './join-items.ts'

/** A piece of text at a position, in a font 10 points high whose letters are 5 points wide. */
const at = (x: number, y: number, str: string, changes: Partial<TextPiece> = {}): TextPiece => ({
  str,
  transform: [10, 0, 0, 10, x, y],
  width: 5 * str.length,
  hasEOL: false,
  ...changes,
})

describe('joinItems', () => {
  test.each<[rule: string, pieces: TextPiece[], text: string]>([
    ['pieces that touch are one word', [at(0, 0, 'Wa'), at(10, 0, 'ter')], 'Water'],
    ['kerning is no space', [at(0, 0, 'T'), at(6, 0, 'o')], 'To'],
    ['overprinted pieces are not separated', [at(0, 0, 'bold'), at(0.3, 0, '!')], 'bold!'],
    ['a gap between columns is a space', [at(0, 0, '37,499.96'), at(200, 0, 'DISTRICT')], '37,499.96 DISTRICT'],
    ['a column drawn after the one to its right is separated', [at(200, 0, 'right'), at(0, 0, 'left')], 'right left'],
    ['a piece further down is a new line', [at(0, 20, 'one'), at(0, 8, 'two')], 'one\ntwo'],
    ['a piece further up is a new line', [at(0, 8, 'two'), at(300, 700, 'header')], 'two\nheader'],
    ['a piece slightly down and far to the left is a new line', [at(400, 4, 'amount'), at(0, 0, 'next')], 'amount\nnext'],
    ['raised letters stay on their line', [at(0, 0, 'x'), at(5, 4, '2')], 'x2'],
    ['a space at the edge of a piece is not doubled', [at(0, 0, 'a '), at(100, 0, 'b')], 'a b'],
    ['a line end that the library detected is not doubled', [at(0, 20, 'a', { hasEOL: true }), at(0, 0, 'b')], 'a\nb'],
    ['words written from right to left are separated', [at(100, 0, 'שלום'), at(70, 0, 'עולם')], 'שלום עולם'],
    [
      'text rotated by 90 degrees is joined along its own direction',
      [
        { str: 'up', transform: [0, 10, -10, 0, 50, 0], width: 10, hasEOL: false },
        { str: 'wards', transform: [0, 10, -10, 0, 50, 10], width: 25, hasEOL: false },
      ],
      'upwards',
    ],
    [
      'text in another direction is a line of its own',
      [at(0, 0, 'cell'), { str: 'label', transform: [0, 10, -10, 0, 20, 0], width: 25, hasEOL: false }],
      'cell\nlabel',
    ],
    [
      'pieces without a size are joined',
      [at(0, 0, 'a', { transform: [0, 0, 0, 0, 0, 0] }), at(100, 0, 'b', { transform: [0, 0, 0, 0, 0, 0] })],
      'ab',
    ],
  ])('%s', (_, pieces, text) => {
    expect(joinItems(pieces)).toBe(text)
  })
})

import * as v from 'valibot'
import { expect, test } from 'vitest'
import { peripheralKeys } from './peripheral-keys.ts'

const entry = (board: unknown) => v.safeParse(peripheralKeys.boards, [{ board, transport: 'sim' }])

test.each(['board_a', 'board_b_mega', 'sbc'])('a board that is known may be configured: %s', (board) => {
  expect(entry(board).success).toBe(true)
})

test.each([
  ['bord_b', 'did you mean board_b?'],
  ['board_c3', 'did you mean board_c'],
  ['toaster-with-wings', 'Known are board_a, board_b'],
])('one that is not is an error with the nearest name: %s', (board, words) => {
  expect(entry(board).issues?.[0]?.message).toContain(words)
  expect(entry(board).issues).toHaveLength(1)
})

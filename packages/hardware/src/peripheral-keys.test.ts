import * as v from 'valibot'
import { expect, test } from 'vitest'
import { type BoardEntry, doubtOf, peripheralKeys } from './peripheral-keys.ts'

const parsed = (...boards: readonly object[]) => v.safeParse(peripheralKeys.boards, boards)
const entry = (board: unknown) => parsed({ board, transport: board === 'sbc' ? 'native' : 'sim' })

test.each(['board_a', 'board_b_mega', 'sbc'])('a board that is known may be configured: %s', (board) => {
  expect(entry(board).success).toBe(true)
})

test.each([
  ['bord_b', 'did you mean board_b?'],
  ['board_c3', 'did you mean board_c'],
  ['nucleo-f401re', 'Known are board_a, board_b'],
])('any other name is accepted, and doubted with the nearest known one: %s', (board, words) => {
  const { output } = entry(board) as { readonly output: BoardEntry[] }
  expect(doubtOf(output[0] as BoardEntry)).toContain(words)
})

test('the name of a board of no known kind may be this machine, too', () => {
  const { output } = parsed({ board: 'rpi-gpio', transport: 'native' }) as { readonly output: BoardEntry[] }
  expect(doubtOf(output[0] as BoardEntry)).toBeUndefined()
})

test.each(['', 'a\nb', 'x'.repeat(65)])('what is no name is an error: %j', (board) => {
  expect(entry(board).success).toBe(false)
})

test.each([
  [{ path: '/dev/ttyACM0' }],
  [{ path: 'COM3' }],
  [{}],
  [{ transport: 'bridge' }],
  [{ transport: 'bridge', path: 'board.local' }],
  [{ transport: 'bridge', path: '[::1]:9' }],
  [{ transport: 'sim', path: 'anything' }],
])('a place that can be reached: %j', (place) => {
  const { output } = parsed({ board: 'board_b', ...place }) as { readonly output: BoardEntry[] }
  expect(doubtOf(output[0] as BoardEntry)).toBeUndefined()
})

test.each([
  [{ path: '/etc/passwd' }, 'no serial port'],
  [{ path: '/dev/ttyACM0/../sda' }, 'no serial port'],
  [{ transport: 'bridge', path: 'host:70000' }, 'no `host:port`'],
  [{ transport: 'bridge', path: 'http://host' }, 'no `host:port`'],
])('a place that cannot be reached is accepted, and doubted: %j', (place, words) => {
  const { output } = parsed({ board: 'board_b', ...place }) as { readonly output: BoardEntry[] }
  expect(doubtOf(output[0] as BoardEntry)).toContain(words)
})

test.each([
  [{ transport: 'native' }, 'belong together'],
  [{ board: 'sbc' }, 'belong together'],
])('one that never can be is an error: %j', (place, words) => {
  expect(parsed({ board: 'board_b', ...place }).issues?.map(({ message }) => message)).toEqual([expect.stringContaining(words)])
})

test('a port belongs to one board', () => {
  expect(parsed({ board: 'board_a', path: '/dev/ttyACM0' }, { board: 'board_b', path: '/dev/ttyACM0' }).success).toBe(false)
})

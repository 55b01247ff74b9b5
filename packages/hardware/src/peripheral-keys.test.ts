import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { type BoardEntry, boardEntryProblem, bridgeAddress, peripheralKeys } from './peripheral-keys.ts'

const parsed = (...boards: readonly object[]) => v.safeParse(peripheralKeys.boards, boards)
const entry = (board: unknown) => parsed({ board, transport: board === 'sbc' ? 'native' : 'sim' })

describe('the boards of [peripherals]', () => {
  test.each(['board_a', 'board_b_mega', 'sbc'])('accept the known name %s', (board) => {
    expect(entry(board).success).toBe(true)
  })

  test.each([
    ['bord_b', 'Did you mean board_b?'],
    ['board_c3', 'Did you mean board_c'],
    ['nucleo-f401re', 'Known boards: board_a, board_b'],
  ])('accept the unknown name %s with a warning', (board, words) => {
    const { output } = entry(board) as { readonly output: BoardEntry[] }
    expect(boardEntryProblem(output[0] as BoardEntry)).toContain(words)
  })

  test('accept an unknown name for this machine', () => {
    const { output } = parsed({ board: 'rpi-gpio', transport: 'native' }) as { readonly output: BoardEntry[] }
    expect(boardEntryProblem(output[0] as BoardEntry)).toBeUndefined()
  })

  test.each(['', 'a\nb', 'x'.repeat(65)])('reject %j as a name', (board) => {
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
  ])('accept the address %j', (address) => {
    const { output } = parsed({ board: 'board_b', ...address }) as { readonly output: BoardEntry[] }
    expect(boardEntryProblem(output[0] as BoardEntry)).toBeUndefined()
  })

  test.each([
    [{ path: '/etc/passwd' }, 'not a serial port'],
    [{ path: '/dev/ttyACM0/../sda' }, 'not a serial port'],
    [{ transport: 'bridge', path: 'host:70000' }, 'not a `host:port`'],
    [{ transport: 'bridge', path: 'http://host' }, 'not a `host:port`'],
  ])('accept the invalid address %j with a warning', (address, words) => {
    const { output } = parsed({ board: 'board_b', ...address }) as { readonly output: BoardEntry[] }
    expect(boardEntryProblem(output[0] as BoardEntry)).toContain(words)
  })

  test.each([
    [{ transport: 'native' }, 'needs the transport native'],
    [{ board: 'sbc' }, 'needs the transport native'],
  ])('reject the contradiction %j', (address, words) => {
    expect(parsed({ board: 'board_b', ...address }).issues?.map(({ message }) => message)).toEqual([expect.stringContaining(words)])
  })

  test('use each serial port once', () => {
    expect(parsed({ board: 'board_a', path: '/dev/ttyACM0' }, { board: 'board_b', path: '/dev/ttyACM0' }).success).toBe(false)
  })
})

describe('bridgeAddress', () => {
  test.each(['', 'a b', 'host:0', 'host:70000', 'http://host', '[::1', '[:]:1', '[1.2.3.4]:1', '::1:9999', '-x:1', 'user@host:9'])(
    'returns undefined for %j',
    (address) => {
      expect(bridgeAddress(address)).toBeUndefined()
    },
  )

  test.each([
    ['192.168.1.5', { host: '192.168.1.5', port: 9999 }],
    ['board.local:80', { host: 'board.local', port: 80 }],
    ['h:1', { host: 'h', port: 1 }],
    ['[::1]:9', { host: '::1', port: 9 }],
    ['[::ffff:127.0.0.1]:9', { host: '::ffff:127.0.0.1', port: 9 }],
  ])('parses %s', (address, expected) => {
    expect(bridgeAddress(address)).toEqual(expected)
  })
})

import * as v from 'valibot'
import { expect, test } from 'vitest'
import { BOARDS, boardNamed, boardOfUsb, FAMILY_BY_VENDOR } from './boards.ts'
import { peripheralKeys } from './peripheral-keys.ts'

test('every board has a name of its own, and every USB identity is one board', () => {
  const names = BOARDS.map(({ name }) => name)
  const identities = BOARDS.flatMap(({ usb }) => usb)
  expect(new Set(names).size).toBe(names.length)
  expect(new Set(identities).size).toBe(identities.length)
  for (const identity of identities) expect(identity).toMatch(/^[\da-f]{4}:[\da-f]{4}$/)
})

test('a board is found by its name and by what USB says', () => {
  for (const board of BOARDS) {
    expect(boardNamed(board.name)).toBe(board)
    for (const identity of board.usb) {
      const [vendor = '', product = ''] = identity.split(':')
      expect(boardOfUsb(vendor, product)).toBe(board)
    }
  }
  expect(boardNamed('board_x')).toBeUndefined()
  expect(boardOfUsb('2e8a', 'ffff')).toBeUndefined()
})

test("a vendor's unknown product gets the alias of its known ones", () => {
  for (const { family, usb } of BOARDS)
    for (const identity of usb) {
      const known = FAMILY_BY_VENDOR[identity.slice(0, 4)]
      if (known) expect(known).toBe(family)
    }
})

test('memory is within 32 bits and does not overlap in one address space', () => {
  for (const { architecture, memory } of BOARDS) {
    for (const { start, length } of memory) {
      expect(length).toBeGreaterThan(0)
      expect(start + length).toBeLessThanOrEqual(2 ** 32)
    }
    // AVR has an address space for each kind of memory
    if (architecture.startsWith('AVR')) continue
    const sorted = memory.toSorted((a, b) => a.start - b.start)
    for (const [index, { start }] of sorted.entries()) {
      const before = sorted[index - 1]
      if (before) expect(start).toBeGreaterThanOrEqual(before.start + before.length)
    }
  }
})

test('live readings begin at RAM base 0x20000000', () => {
  const live = BOARDS.filter(({ probeChip }) => probeChip !== undefined)
  expect(live.map(({ name }) => name)).toEqual(['board_c1', 'board_c2'])
  for (const { memory } of live) expect(memory.find(({ name }) => name === 'RAM')?.start).toBe(0x20000000)
})

test('[peripherals] has its defaults, and a board entry knows its transports only', () => {
  const schema = v.strictObject(peripheralKeys)
  expect(v.parse(schema, {})).toEqual({ enabled: false, boards: [], lease_secs: 30, pin_reservation_secs: 3600 })
  expect(v.parse(schema, { boards: [{ board: 'board_a' }] }).boards).toEqual([{ board: 'board_a', transport: 'serial', baud: 115_200 }])
  for (const entry of [{}, { board: 'board_a', transport: 'usb' }, { board: 'board_a', baud: 1 }, { board: 'a', x: 1 }])
    expect(v.safeParse(schema, { boards: [entry] }).success).toBe(false)
})

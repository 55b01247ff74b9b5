import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { BOARDS, boardNamed, boardOfUsb, FAMILY_BY_VENDOR } from './boards.ts'
import { peripheralKeys } from './peripheral-keys.ts'

describe('boards', () => {
  test('have distinct names and USB identities', () => {
    const names = BOARDS.map(({ name }) => name)
    const identities = BOARDS.flatMap(({ usb }) => usb)
    expect(new Set(names).size).toBe(names.length)
    expect(new Set(identities).size).toBe(identities.length)
    for (const identity of identities) expect(identity).toMatch(/^[\da-f]{4}:[\da-f]{4}$/)
  })

  test('are found by name and by USB identity', () => {
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

  test('of one vendor share the alias prefix of FAMILY_BY_VENDOR', () => {
    for (const { family, usb } of BOARDS)
      for (const identity of usb) {
        const known = FAMILY_BY_VENDOR[identity.slice(0, 4)]
        if (known) expect(known).toBe(family)
      }
  })

  test('have memory ranges within 32 bits that do not overlap', () => {
    for (const { architecture, memory } of BOARDS) {
      for (const { start, length } of memory) {
        expect(length).toBeGreaterThan(0)
        expect(start + length).toBeLessThanOrEqual(2 ** 32)
      }
      // AVR has a separate address space for each kind of memory.
      if (architecture.startsWith('AVR')) continue
      const sorted = memory.toSorted((a, b) => a.start - b.start)
      for (const [index, { start }] of sorted.entries()) {
        const before = sorted[index - 1]
        if (before) expect(start).toBeGreaterThanOrEqual(before.start + before.length)
      }
    }
  })

  test('with a debug probe have their RAM at 0x20000000', () => {
    const live = BOARDS.filter(({ probeChip }) => probeChip !== undefined)
    expect(live.map(({ name }) => name)).toEqual(['board_c1', 'board_c2'])
    for (const { memory } of live) expect(memory.find(({ name }) => name === 'RAM')?.start).toBe(0x20000000)
  })
})

describe('[peripherals]', () => {
  test('has defaults and rejects unknown transports and keys', () => {
    const schema = v.strictObject(peripheralKeys)
    expect(v.parse(schema, {})).toEqual({ enabled: false, boards: [], lease_secs: 30, pin_reservation_secs: 3600 })
    expect(v.parse(schema, { boards: [{ board: 'board_a' }] }).boards).toEqual([{ board: 'board_a', transport: 'serial', baud: 115_200 }])
    for (const entry of [{}, { board: 'board_a', transport: 'usb' }, { board: 'board_a', baud: 1 }, { board: 'a', x: 1 }])
      expect(v.safeParse(schema, { boards: [entry] }).success).toBe(false)
  })
})

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Level } from './gpio.ts'
import * as abi from './line-abi.ts'

/** Composes a request number as the _IOC macro of the kernel's headers does. */
const ioctl = (direction: number, size: number, number: number) => ((direction << 30) | (size << 16) | (0xb4 << 8) | number) >>> 0
const READ = 2
const READ_WRITE = 3

describe('request numbers', () => {
  test('carry the size of their structure', () => {
    expect(abi.GET_CHIP_INFO).toBe(ioctl(READ, abi.chipInfoBuffer().length, 0x01))
    expect(abi.GET_LINE_INFO).toBe(ioctl(READ_WRITE, abi.lineInfoBuffer(0).length, 0x05))
    expect(abi.GET_LINES).toBe(ioctl(READ_WRITE, abi.linesRequest({ offsets: [0], direction: 'input', consumer: '' }).length, 0x07))
    expect(abi.GET_VALUES).toBe(ioctl(READ_WRITE, abi.valuesBuffer(1).length, 0x0e))
    expect(abi.SET_VALUES).toBe(ioctl(READ_WRITE, abi.valuesBuffer(1).length, 0x0f))
  })
})

describe('linesRequest', () => {
  test('contains the first levels of outputs, so that no other level is driven', () => {
    const request = abi.linesRequest({ offsets: [17, 4, 22], direction: 'output', consumer: 'sluice', levels: [1, 0, 1] })
    expect([request.readUInt32LE(0), request.readUInt32LE(4), request.readUInt32LE(8)]).toEqual([17, 4, 22])
    expect(request.toString('latin1', 256, 264)).toBe('sluice\0\0')
    expect(request.readBigUInt64LE(288)).toBe(8n)
    expect(request.readUInt32LE(296)).toBe(1)
    expect([request.readUInt32LE(320), request.readBigUInt64LE(328), request.readBigUInt64LE(336)]).toEqual([2, 0b101n, 0b111n])
    expect(request.readUInt32LE(560)).toBe(3)
  })

  test('contains bias, edges and debouncing of inputs', () => {
    const watch = { edge: 'both', debounceUs: 5000, onEvent: () => {} } as const
    const request = abi.linesRequest({ offsets: [4], direction: 'input', bias: 'pull-up', consumer: 'sluice', watch })
    expect(request.readBigUInt64LE(288)).toBe(4n | 16n | 32n | 256n)
    expect([request.readUInt32LE(320), request.readBigUInt64LE(328), request.readBigUInt64LE(336)]).toEqual([3, 5000n, 1n])
  })

  test('sets neither direction for as-is', () => {
    expect(abi.linesRequest({ offsets: [4], direction: 'as-is', consumer: 'x' }).readBigUInt64LE(288)).toBe(0n)
  })

  test('cuts a long consumer name before the next field', () => {
    const request = abi.linesRequest({ offsets: [4], direction: 'as-is', consumer: 'x'.repeat(100) })
    expect(request[287]).toBe(0)
    expect(request.readBigUInt64LE(288)).toBe(0n)
  })

  test('sets the bit of the 64th line', () => {
    const offsets = Array.from({ length: 64 }, (_, index) => index)
    const levels = offsets.map((offset): Level => (offset === 63 ? 1 : 0))
    expect(abi.linesRequest({ offsets, direction: 'output', consumer: '', levels }).readBigUInt64LE(328)).toBe(1n << 63n)
  })
})

describe('parseValues', () => {
  test('returns the levels that valuesBuffer encoded', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom<Level>(0, 1), { minLength: 1, maxLength: 64 }), (levels) => {
        expect(abi.parseValues(abi.valuesBuffer(levels.length, levels), levels.length)).toEqual(levels)
      }),
    )
  })
})

describe('parseLineInfo', () => {
  test('ends texts at their NUL or at their full size', () => {
    const info = abi.lineInfoBuffer(7)
    info.write('GPIO7\0rest', 0)
    info.write('c'.repeat(32), 32)
    info.writeBigUInt64LE(1n | 8n, 72)
    expect(abi.parseLineInfo(info)).toEqual({ offset: 7, name: 'GPIO7', isUsed: true, consumer: 'c'.repeat(32), direction: 'output' })
  })
})

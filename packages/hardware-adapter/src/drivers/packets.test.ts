import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import * as ch341a from './ch341a-packet.ts'
import * as mcp2221 from './mcp2221-report.ts'

const bytes = (max: number) => fc.uint8Array({ minLength: 1, maxLength: max })
const address = fc.integer({ min: 0x08, max: 0x77 })
const mask = (max: number) => fc.integer({ min: 0, max })

describe('the reports of an MCP2221', () => {
  test('have 64 bytes with the length and the address', () => {
    fc.assert(
      fc.property(address, bytes(60), fc.integer({ min: 1, max: 256 }), (to, part, length) => {
        const write = mcp2221.writeReport(mcp2221.COMMAND.write, { address: to, length, part })
        const read = mcp2221.readReport(mcp2221.COMMAND.read, { address: to, length })
        expect([write.length, read.length]).toEqual([64, 64])
        expect([write[1], write[2], write[3]]).toEqual([length & 255, length >> 8, to * 2])
        expect([read[1], read[2], read[3]]).toEqual([length & 255, length >> 8, to * 2 + 1])
        expect(Array.from(write.subarray(4, 4 + part.length))).toEqual(Array.from(part))
      }),
    )
  })

  test('never select a clock above the requested one', () => {
    const [min, max] = mcp2221.I2C_SPEED_RANGE
    fc.assert(
      fc.property(fc.integer({ min, max }), (speedHz) => {
        const divider = mcp2221.speedReport(speedHz)[4] ?? 0
        expect(12_000_000 / (divider + 3)).toBeLessThanOrEqual(speedHz)
      }),
    )
  })

  test('change only the named GPIO lines', () => {
    fc.assert(
      fc.property(mask(15), fc.option(mask(15), { nil: undefined }), fc.option(mask(15), { nil: undefined }), (lines, value, direction) => {
        const change = { lines, ...(value !== undefined && { value }), ...(direction !== undefined && { direction }) }
        const report = mcp2221.setGpioReport(change)
        for (let line = 0; line < 4; line++) {
          const isChanged = (lines >> line) & 1
          expect(report[2 + 4 * line]).toBe(value === undefined ? 0 : isChanged)
          expect(report[4 + 4 * line]).toBe(direction === undefined ? 0 : isChanged)
        }
      }),
    )
  })

  test('decode any answer without an exception', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 64, maxLength: 64 }), (answer) => {
        mcp2221.engineStatus(answer)
        expect(mcp2221.receivedData(answer)?.length ?? 0).toBeLessThanOrEqual(60)
        for (let line = 0; line < 4; line++) mcp2221.gpioLine(answer, line)
      }),
    )
  })
})

describe('the packets of a CH341A', () => {
  test('have at most 32 bytes, and their answerBytes add up', () => {
    fc.assert(
      fc.property(bytes(256), fc.integer({ min: 1, max: 256 }), (data, length) => {
        const writes = [...ch341a.writePackets(data)]
        const reads = [...ch341a.readPackets(length)]
        for (const { packet } of [...writes, ...reads]) expect(packet.length).toBeLessThanOrEqual(32)
        expect(writes.reduce((sum, { answerBytes }) => sum + answerBytes, 0)).toBe(data.length)
        expect(reads.reduce((sum, { answerBytes }) => sum + answerBytes, 0)).toBe(length)
        expect(reads.every(({ answerBytes }) => answerBytes <= 32)).toBe(true)
        // Only the last byte is not acknowledged; a stop follows.
        expect(Array.from(reads.at(-1)?.packet.subarray(-3) ?? [])).toEqual([0xc0, 0x75, 0])
      }),
    )
  })

  test('reverse the bits of a byte, and a second reversal restores it', () => {
    fc.assert(fc.property(mask(255), (byte) => ch341a.reversedBits(ch341a.reversedBits(byte)) === byte))
    expect(ch341a.reversedBits(0b1100_1010)).toBe(0b0101_0011)
  })
})

import { AppError } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { EEPROM, THERMOMETER } from '../testing/bus-log.ts'
import { hidPort, plug } from '../testing/fake-native.ts'
import { Mcp2221Chip } from '../testing/mcp2221-chip.ts'
import { mcp2221 } from './mcp2221.ts'

const arrange = (i2cSpeedHz = 100_000) => {
  const chip = new Mcp2221Chip()
  const device = plug()
  const clock = testClock()
  const { i2c, gpio, close } = mcp2221(clock, i2cSpeedHz, async () => hidPort(chip, device))
  if (!i2c || !gpio) throw new Error('the MCP2221 has I2C and GPIO')
  return { chip, device, clock, i2c, gpio, close }
}

describe('the MCP2221 driver', () => {
  test('reads a register in one transaction with a repeated start', async () => {
    const { chip, i2c } = arrange()
    expect(await i2c.read(THERMOMETER, 2, 0)).toEqual(Uint8Array.of(0x19, 0))
    expect(chip.bus.log).toEqual(['S 90 00', 'Sr 91 read 2 P'])
  })

  test('writes nothing in a read without a register', async () => {
    const { chip, i2c } = arrange()
    await i2c.read(THERMOMETER, 2)
    expect(chip.bus.log).toEqual(['S 91 read 2 P'])
  })

  test('reads back a write of any length at any address', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 255 }), fc.uint8Array({ minLength: 1, maxLength: 255 }), async (at, bytes) => {
        const { i2c } = arrange()
        await i2c.write(EEPROM, Uint8Array.of(at, ...bytes))
        expect(Buffer.from(await i2c.read(EEPROM, bytes.length, at)).equals(bytes)).toBe(true)
      }),
      { numRuns: 40 },
    )
  })

  test('makes one transaction of a write with several reports', async () => {
    const { chip, i2c } = arrange()
    await i2c.write(EEPROM, new Uint8Array(150))
    expect(chip.bus.log).toEqual([`S a0 ${'00'.repeat(150)} P`])
  })

  test('throws `not_found` for an unused address and then works on', async () => {
    const { i2c } = arrange()
    await expect(i2c.read(0x11, 1)).rejects.toMatchObject({ code: 'not_found', message: 'No device acknowledges at 0x11' })
    await expect(i2c.write(0x11, Uint8Array.of(1))).rejects.toMatchObject({ code: 'not_found' })
    await expect(i2c.read(0x11, 1, 3)).rejects.toMatchObject({ code: 'not_found' })
    expect(await i2c.probe(0x11)).toBe(false)
    expect(await i2c.probe(THERMOMETER)).toBe(true)
  })

  test.each([['SDA'], ['SCL']] as const)('reports a hanging bus when %s is held low', async (low) => {
    const { chip, i2c } = arrange()
    await i2c.read(THERMOMETER, 1)
    chip.faults.low = low
    await expect(i2c.read(THERMOMETER, 1)).rejects.toMatchObject({
      code: 'upstream_timeout',
      message: expect.stringContaining(`${low} held low`),
    })
  })

  test('polls a busy engine a bounded number of times', async () => {
    const { chip, i2c } = arrange()
    chip.faults.busy = 20
    await i2c.write(EEPROM, Uint8Array.of(0, 1))
    chip.faults.busy = 100_000
    await expect(i2c.write(EEPROM, Uint8Array.of(0, 1))).rejects.toMatchObject({ code: 'upstream_timeout' })
    expect(chip.faults.busy).toBeGreaterThan(99_000)
  })

  test('waits for data that arrive late', async () => {
    const { chip, i2c } = arrange()
    chip.faults.slowData = 10
    expect(await i2c.read(THERMOMETER, 2, 0)).toEqual(Uint8Array.of(0x19, 0))
  })

  test('cancels a write that times out on the bus', async () => {
    const { chip, i2c } = arrange()
    chip.faults.writeEndsIn = 0x44
    await expect(i2c.write(EEPROM, Uint8Array.of(0))).rejects.toMatchObject({ code: 'upstream_timeout' })
    delete chip.faults.writeEndsIn
    await i2c.write(EEPROM, Uint8Array.of(0))
  })

  test.each<[string, (answer: Uint8Array) => Uint8Array]>([
    ['a short report', (answer) => answer.subarray(0, 12)],
    ['an answer to another command', (answer) => Uint8Array.from(answer).fill(0x77, 0, 1)],
  ])('rejects %s', async (_answer, garble) => {
    const { device, i2c } = arrange()
    await i2c.read(THERMOMETER, 1)
    device.garble = garble
    await expect(i2c.read(THERMOMETER, 1)).rejects.toBeInstanceOf(AppError)
    device.garble = (answer) => answer
    await i2c.read(THERMOMETER, 1)
  })

  test('rejects more data than requested', async () => {
    const { device, i2c } = arrange()
    await i2c.read(THERMOMETER, 1)
    device.garble = (answer) => (answer[0] === 0x40 ? Uint8Array.from(answer).fill(9, 3, 4) : answer)
    await expect(i2c.read(THERMOMETER, 1)).rejects.toMatchObject({ code: 'upstream' })
  })

  test('handles random answers in bounded time', async () => {
    const noise = fc.uint8Array({ minLength: 64, maxLength: 64 })
    await fc.assert(
      fc.asyncProperty(fc.array(noise, { minLength: 1, maxLength: 8 }), async (reports) => {
        const { device, i2c } = arrange()
        await i2c.read(THERMOMETER, 1)
        let at = 0
        device.garble = (answer) => {
          const next = Uint8Array.from(reports[at++ % reports.length] ?? answer)
          next[0] = answer[0] ?? 0
          return next
        }
        const outcome = await i2c.read(THERMOMETER, 5).catch((error: unknown) => error)
        if (outcome instanceof Uint8Array) expect(outcome).toHaveLength(5)
        else expect(outcome).toBeInstanceOf(AppError)
        expect(at).toBeLessThan(3000)
      }),
      { numRuns: 60 },
    )
  })

  test('throws `unavailable` while unplugged and works again afterwards', async () => {
    const { device, i2c } = arrange()
    await i2c.read(THERMOMETER, 1)
    device.state = 'out'
    await expect(i2c.read(THERMOMETER, 1)).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining('unplugged') })
    expect(device.open).toBe(0)
    device.state = 'in'
    expect(await i2c.read(THERMOMETER, 1)).toHaveLength(1)
  })

  test('times out when the chip is silent', async () => {
    const { device, i2c } = arrange()
    device.state = 'silent'
    await expect(i2c.read(THERMOMETER, 1)).rejects.toMatchObject({ code: 'upstream_timeout', message: 'The MCP2221 does not answer' })
    expect(device.open).toBe(0)
  })

  test('stays open between calls and closes after ten idle seconds', async () => {
    const { device, i2c, clock } = arrange()
    await i2c.read(THERMOMETER, 1)
    await clock.advance(9_999)
    await i2c.read(THERMOMETER, 1)
    await clock.advance(9_999)
    expect(device.open).toBe(1)
    await clock.advance(1)
    expect(device.open).toBe(0)
  })

  test('closes twice without effect and leaves nothing open', async () => {
    const { device, i2c, clock, close } = arrange()
    await i2c.read(THERMOMETER, 1)
    await close()
    await close()
    expect(device.open).toBe(0)
    expect(clock.sleeping).toBe(0)
  })

  test.each([
    [100_000, 100_000],
    [400_000, 400_000],
    [50_000, 50_000],
    [300_001, 300_000],
  ])('for %d Hz selects the fastest clock up to it, about %d Hz', async (speedHz, selectedHz) => {
    const { chip, i2c } = arrange(speedHz)
    await i2c.read(THERMOMETER, 1)
    expect(chip.speed()).toBeLessThanOrEqual(speedHz)
    expect(chip.speed()).toBeGreaterThan(selectedHz * 0.97)
  })

  test('changes only the named lines, also their function', async () => {
    const { chip, gpio } = arrange()
    expect(await gpio.write({ lines: 0b0001, direction: 0b0001, value: 0b0001 })).toEqual({ direction: 0b0001, value: 0b0001 })
    expect(chip.pins[2]?.usage).toBe(1)
    expect(await gpio.write({ lines: 0b0110, direction: 0b0100, value: 0b0100 })).toEqual({ direction: 0b0101, value: 0b0101 })
    expect(chip.pins.map(({ usage }) => usage)).toEqual([0, 0, 0, 0])
    expect(await gpio.write({ lines: 0b0001, value: 0 })).toEqual({ direction: 0b0101, value: 0b0100 })
  })
})

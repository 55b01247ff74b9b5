import { AppError } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { EEPROM, THERMOMETER } from '../testing/bus-log.ts'
import { Ch341aChip } from '../testing/ch341a-chip.ts'
import { plug, usbPort } from '../testing/fake-native.ts'
import { ch341a } from './ch341a.ts'

const arrange = (i2cSpeedHz = 100_000) => {
  const chip = new Ch341aChip()
  const device = plug()
  const clock = testClock()
  const adapter = ch341a(clock, i2cSpeedHz, async () => usbPort(chip, device))
  const { i2c, spi, gpio } = adapter
  if (!i2c || !spi || !gpio) throw new Error('the CH341A has I2C, SPI and GPIO')
  return { chip, device, clock, i2c, spi, gpio, close: () => adapter.close() }
}

const anyClock = { mode: 0, speedHz: undefined } as const

describe('the CH341A driver', () => {
  test('reads a register in one transaction with a repeated start', async () => {
    const { chip, i2c } = arrange()
    expect(Array.from(await i2c.read(THERMOMETER, 2, 0))).toEqual([0x19, 0])
    expect(chip.bus.log).toEqual(['S 90 00 Sr 91 read 1 read 1 nak P'])
  })

  test('reads back a write of any length at any address', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 255 }), fc.uint8Array({ minLength: 1, maxLength: 255 }), async (at, bytes) => {
        const { chip, i2c } = arrange()
        await i2c.write(EEPROM, Uint8Array.of(at, ...bytes))
        expect(Buffer.from(await i2c.read(EEPROM, bytes.length, at)).equals(bytes)).toBe(true)
        expect(chip.bus.log).toHaveLength(2)
      }),
      { numRuns: 40 },
    )
  })

  test('sends no data to an unused address', async () => {
    const { chip, i2c } = arrange()
    await expect(i2c.write(0x11, Uint8Array.of(1, 2, 3))).rejects.toMatchObject({ code: 'not_found' })
    await expect(i2c.read(0x11, 3, 7)).rejects.toMatchObject({ code: 'not_found' })
    expect(chip.bus.log).toEqual(['S 22 nak P', 'S 22 nak P'])
    expect(await i2c.probe(0x11)).toBe(false)
    expect(await i2c.probe(THERMOMETER)).toBe(true)
  })

  test('ends the transaction when data are not acknowledged', async () => {
    const { chip, i2c } = arrange()
    chip.refuseFrom = 20
    await expect(i2c.write(EEPROM, new Uint8Array(100))).rejects.toMatchObject({ code: 'upstream' })
    expect(chip.bus.log[0]).toMatch(/nak P$/)
  })

  test('runs an SPI transfer of any length under one chip select', async () => {
    const { chip, spi } = arrange()
    expect(Array.from(await spi.transfer(Uint8Array.of(0x9f, 0, 0, 0), anyClock))).toEqual([0xff, 0xef, 0x40, 0x18])
    expect(chip.pins.value & 1).toBe(1)
    await spi.transfer(Uint8Array.of(0x06), anyClock)
    await spi.transfer(Uint8Array.of(0x02, 0, 0, 0, ...Array.from({ length: 100 }, (_none, index) => index)), anyClock)
    const back = await spi.transfer(Uint8Array.from([0x03, 0, 0, 0, ...new Uint8Array(100)]), anyClock)
    expect(Array.from(back.subarray(4))).toEqual(Array.from({ length: 100 }, (_none, index) => index))
  })

  test('refuses an SPI mode or clock that it does not have', () => {
    const { spi } = arrange()
    expect(() => spi.transfer(Uint8Array.of(0), { mode: 3, speedHz: undefined })).toThrow('mode 0 only')
    expect(() => spi.transfer(Uint8Array.of(0), { mode: 0, speedHz: 100_000 })).toThrow('no slower clock')
  })

  test.each([
    [100_000, 100_000],
    [399_999, 100_000],
    [750_000, 750_000],
    [20_000, 20_000],
  ])('for %d Hz selects the fastest clock up to it, %d Hz', async (speedHz, selectedHz) => {
    const { chip, i2c } = arrange(speedHz)
    await i2c.probe(THERMOMETER)
    expect(chip.speed()).toBe(selectedHz)
  })

  test('changes only the named lines and reads inputs', async () => {
    const { gpio } = arrange()
    expect(await gpio.write({ lines: 0b0011, direction: 0b0011, value: 0b0010 })).toEqual({ direction: 0b0011, value: 0b1000_0010 })
    expect(await gpio.write({ lines: 0b0100, direction: 0b0100, value: 0b0100 })).toEqual({ direction: 0b0111, value: 0b1000_0110 })
    expect(await gpio.read()).toEqual({ direction: 0b0111, value: 0b1000_0110 })
  })

  test.each([['out'], ['silent']] as const)('throws `unavailable` while %s and opens the device again afterwards', async (state) => {
    const { device, i2c } = arrange()
    await i2c.read(THERMOMETER, 1)
    device.state = state
    await expect(i2c.read(THERMOMETER, 1)).rejects.toMatchObject({ code: 'unavailable' })
    expect(device.open).toBe(0)
    device.state = 'in'
    expect(await i2c.read(THERMOMETER, 1)).toHaveLength(1)
  })

  test('rejects an answer that is too short', async () => {
    const { device, i2c } = arrange()
    device.garble = (answer) => answer.subarray(1)
    await expect(i2c.read(THERMOMETER, 5)).rejects.toBeInstanceOf(AppError)
  })

  test('closes twice without effect and leaves nothing open', async () => {
    const { device, i2c, clock, close } = arrange()
    await i2c.probe(EEPROM)
    await close()
    await close()
    expect(device.open).toBe(0)
    expect(clock.sleeping).toBe(0)
  })
})

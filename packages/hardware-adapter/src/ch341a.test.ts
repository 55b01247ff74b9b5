import { AppError } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ch341a } from './ch341a.ts'
import { EEPROM, THERMOMETER } from './testing/bus-log.ts'
import { ch341aChip } from './testing/ch341a-chip.ts'
import { plug, usbPort } from './testing/fake-native.ts'

const arrange = (i2cSpeedHz = 100_000) => {
  const chip = ch341aChip()
  const device = plug()
  const clock = testClock()
  const { i2c, spi, gpio, close } = ch341a({ clock, i2cSpeedHz, open: async () => usbPort(chip, device) })
  if (!i2c || !spi || !gpio) throw new Error('it has all three')
  return { chip, device, clock, i2c, spi, gpio, close }
}

const anyClock = { mode: 0, speedHz: undefined } as const

test('a read with a register is one transaction with a repeated start, and its last byte is not acknowledged', async () => {
  const { chip, i2c } = arrange()
  expect(Array.from(await i2c.read(THERMOMETER, 2, 0))).toEqual([0x19, 0])
  expect(chip.bus.log).toEqual(['S 90 00 Sr 91 read 1 read 1 nak P'])
})

test('what is written is read again, at any length and place', async () => {
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

test('to an address where nobody is, no data are sent', async () => {
  const { chip, i2c } = arrange()
  await expect(i2c.write(0x11, Uint8Array.of(1, 2, 3))).rejects.toMatchObject({ code: 'not_found' })
  await expect(i2c.read(0x11, 3, 7)).rejects.toMatchObject({ code: 'not_found' })
  expect(chip.bus.log).toEqual(['S 22 nak P', 'S 22 nak P'])
  expect(await i2c.probe(0x11)).toBe(false)
  expect(await i2c.probe(THERMOMETER)).toBe(true)
})

test('data that are not acknowledged end the transaction', async () => {
  const { chip, i2c } = arrange()
  chip.refuseFrom = 20
  await expect(i2c.write(EEPROM, new Uint8Array(100))).rejects.toMatchObject({ code: 'upstream' })
  expect(chip.bus.log[0]).toMatch(/nak P$/)
})

test('SPI runs under one chip select, whatever the length, highest bit first', async () => {
  const { chip, spi } = arrange()
  expect(Array.from(await spi.transfer(Uint8Array.of(0x9f, 0, 0, 0), anyClock))).toEqual([0xff, 0xef, 0x40, 0x18])
  expect(chip.pins.value & 1).toBe(1)
  await spi.transfer(Uint8Array.of(0x06), anyClock)
  await spi.transfer(Uint8Array.of(0x02, 0, 0, 0, ...Array.from({ length: 100 }, (_none, index) => index)), anyClock)
  const back = await spi.transfer(Uint8Array.from([0x03, 0, 0, 0, ...new Uint8Array(100)]), anyClock)
  expect(Array.from(back.subarray(4))).toEqual(Array.from({ length: 100 }, (_none, index) => index))
})

test('a mode or a clock that it does not have is refused', () => {
  const { spi } = arrange()
  expect(() => spi.transfer(Uint8Array.of(0), { mode: 3, speedHz: undefined })).toThrow('mode 0 only')
  expect(() => spi.transfer(Uint8Array.of(0), { mode: 0, speedHz: 100_000 })).toThrow('no slower clock')
})

test.each([
  [100_000, 100_000],
  [399_999, 100_000],
  [750_000, 750_000],
  [20_000, 20_000],
])('a clock of %d Hz is set as the fastest that is no faster: %d', async (asked, set) => {
  const { chip, i2c } = arrange(asked)
  await i2c.probe(THERMOMETER)
  expect(chip.speed()).toBe(set)
})

test('only the lines that are named change, and inputs are read', async () => {
  const { gpio } = arrange()
  expect(await gpio.write({ lines: 0b0011, direction: 0b0011, value: 0b0010 })).toEqual({ direction: 0b0011, value: 0b1000_0010 })
  expect(await gpio.write({ lines: 0b0100, direction: 0b0100, value: 0b0100 })).toEqual({ direction: 0b0111, value: 0b1000_0110 })
  expect(await gpio.read()).toEqual({ direction: 0b0111, value: 0b1000_0110 })
})

test.each([['out'], ['silent']] as const)('an adapter that is %s is unavailable, and opened anew afterwards', async (state) => {
  const { device, i2c } = arrange()
  await i2c.read(THERMOMETER, 1)
  device.state = state
  await expect(i2c.read(THERMOMETER, 1)).rejects.toMatchObject({ code: 'unavailable' })
  expect(device.open).toBe(0)
  device.state = 'in'
  expect(await i2c.read(THERMOMETER, 1)).toHaveLength(1)
})

test('an answer that is too short is no answer', async () => {
  const { device, i2c } = arrange()
  device.garble = (answer) => answer.subarray(1)
  await expect(i2c.read(THERMOMETER, 5)).rejects.toBeInstanceOf(AppError)
})

test('close may be called twice and leaves nothing open or waiting', async () => {
  const { device, i2c, clock, close } = arrange()
  await i2c.probe(EEPROM)
  await close()
  await close()
  expect(device.open).toBe(0)
  expect(clock.sleeping).toBe(0)
})

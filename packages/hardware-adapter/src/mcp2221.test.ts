import { AppError } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { mcp2221 } from './mcp2221.ts'
import { EEPROM, THERMOMETER } from './testing/bus-log.ts'
import { hidPort, plug } from './testing/fake-native.ts'
import { mcp2221Chip } from './testing/mcp2221-chip.ts'

const arrange = (i2cSpeedHz = 100_000) => {
  const chip = mcp2221Chip()
  const device = plug()
  const clock = testClock()
  const { i2c, gpio, close } = mcp2221({ clock, i2cSpeedHz, open: async () => hidPort(chip, device) })
  if (!i2c || !gpio) throw new Error('it has both')
  return { chip, device, clock, i2c, gpio, close }
}

test('a read with a register is one transaction with a repeated start', async () => {
  const { chip, i2c } = arrange()
  expect(await i2c.read(THERMOMETER, 2, 0)).toEqual(Uint8Array.of(0x19, 0))
  expect(chip.bus.log).toEqual(['S 90 00', 'Sr 91 read 2 P'])
})

test('a read without a register writes nothing', async () => {
  const { chip, i2c } = arrange()
  await i2c.read(THERMOMETER, 2)
  expect(chip.bus.log).toEqual(['S 91 read 2 P'])
})

test('what is written is read again, at any length and place', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: 255 }), fc.uint8Array({ minLength: 1, maxLength: 255 }), async (at, bytes) => {
      const { i2c } = arrange()
      await i2c.write(EEPROM, Uint8Array.of(at, ...bytes))
      expect(Buffer.from(await i2c.read(EEPROM, bytes.length, at)).equals(bytes)).toBe(true)
    }),
    { numRuns: 40 },
  )
})

test('a write of several reports is one transaction', async () => {
  const { chip, i2c } = arrange()
  await i2c.write(EEPROM, new Uint8Array(150))
  expect(chip.bus.log).toEqual([`S a0 ${'00'.repeat(150)} P`])
})

test('nobody at an address is not_found, and the next transaction works', async () => {
  const { i2c } = arrange()
  await expect(i2c.read(0x11, 1)).rejects.toMatchObject({ code: 'not_found', message: 'No device acknowledges at 0x11' })
  await expect(i2c.write(0x11, Uint8Array.of(1))).rejects.toMatchObject({ code: 'not_found' })
  await expect(i2c.read(0x11, 1, 3)).rejects.toMatchObject({ code: 'not_found' })
  expect(await i2c.probe(0x11)).toBe(false)
  expect(await i2c.probe(THERMOMETER)).toBe(true)
})

test.each([['SDA'], ['SCL']] as const)('a bus whose %s is held low is said to hang, in bounded time', async (low) => {
  const { chip, i2c } = arrange()
  await i2c.read(THERMOMETER, 1)
  chip.faults.low = low
  await expect(i2c.read(THERMOMETER, 1)).rejects.toMatchObject({
    code: 'upstream_timeout',
    message: expect.stringContaining(`${low} held low`),
  })
})

test('an engine that is busy is asked again, one that stays busy is not asked for ever', async () => {
  const { chip, i2c } = arrange()
  chip.faults.busy = 20
  await i2c.write(EEPROM, Uint8Array.of(0, 1))
  chip.faults.busy = 100_000
  await expect(i2c.write(EEPROM, Uint8Array.of(0, 1))).rejects.toMatchObject({ code: 'upstream_timeout' })
  expect(chip.faults.busy).toBeGreaterThan(99_000)
})

test('data that come late are waited for', async () => {
  const { chip, i2c } = arrange()
  chip.faults.slowData = 10
  expect(await i2c.read(THERMOMETER, 2, 0)).toEqual(Uint8Array.of(0x19, 0))
})

test('a write that times out on the bus is said, and cancelled', async () => {
  const { chip, i2c } = arrange()
  chip.faults.writeEndsIn = 0x44
  await expect(i2c.write(EEPROM, Uint8Array.of(0))).rejects.toMatchObject({ code: 'upstream_timeout' })
  delete chip.faults.writeEndsIn
  await i2c.write(EEPROM, Uint8Array.of(0))
})

test.each<[string, (answer: Uint8Array) => Uint8Array]>([
  ['a short report', (answer) => answer.subarray(0, 12)],
  ['an answer to another command', (answer) => Uint8Array.from(answer).fill(0x77, 0, 1)],
])('%s is no answer', async (_what, garble) => {
  const { device, i2c } = arrange()
  await i2c.read(THERMOMETER, 1)
  device.garble = garble
  await expect(i2c.read(THERMOMETER, 1)).rejects.toBeInstanceOf(AppError)
  device.garble = (answer) => answer
  await i2c.read(THERMOMETER, 1)
})

test('more data than were asked for are refused', async () => {
  const { device, i2c } = arrange()
  await i2c.read(THERMOMETER, 1)
  device.garble = (answer) => (answer[0] === 0x40 ? Uint8Array.from(answer).fill(9, 3, 4) : answer)
  await expect(i2c.read(THERMOMETER, 1)).rejects.toMatchObject({ code: 'upstream' })
})

test('random answers give a result of the right length or an AppError, in bounded time', async () => {
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

test('an unplugged adapter is unavailable, and works again once it is back', async () => {
  const { device, i2c } = arrange()
  await i2c.read(THERMOMETER, 1)
  device.state = 'out'
  await expect(i2c.read(THERMOMETER, 1)).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining('unplugged') })
  expect(device.open).toBe(0)
  device.state = 'in'
  expect(await i2c.read(THERMOMETER, 1)).toHaveLength(1)
})

test('a silent adapter does not answer', async () => {
  const { device, i2c } = arrange()
  device.state = 'silent'
  await expect(i2c.read(THERMOMETER, 1)).rejects.toMatchObject({ code: 'upstream_timeout', message: 'The MCP2221 does not answer' })
  expect(device.open).toBe(0)
})

test('it stays open between calls and is given free after ten idle seconds', async () => {
  const { device, i2c, clock } = arrange()
  await i2c.read(THERMOMETER, 1)
  await clock.advance(9_999)
  await i2c.read(THERMOMETER, 1)
  await clock.advance(9_999)
  expect(device.open).toBe(1)
  await clock.advance(1)
  expect(device.open).toBe(0)
})

test('close may be called twice and leaves nothing open or waiting', async () => {
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
])('a clock of %d Hz is asked for as the fastest that is no faster: %d', async (asked, set) => {
  const { chip, i2c } = arrange(asked)
  await i2c.read(THERMOMETER, 1)
  expect(chip.speed()).toBeLessThanOrEqual(asked)
  expect(chip.speed()).toBeGreaterThan(set * 0.97)
})

test('only the lines that are named change, and a pin with another use is made GPIO only if it is named', async () => {
  const { chip, gpio } = arrange()
  expect(await gpio.write({ lines: 0b0001, direction: 0b0001, value: 0b0001 })).toEqual({ direction: 0b0001, value: 0b0001 })
  expect(chip.pins[2]?.purpose).toBe(1)
  expect(await gpio.write({ lines: 0b0110, direction: 0b0100, value: 0b0100 })).toEqual({ direction: 0b0101, value: 0b0101 })
  expect(chip.pins.map(({ purpose }) => purpose)).toEqual([0, 0, 0, 0])
  expect(await gpio.write({ lines: 0b0001, value: 0 })).toEqual({ direction: 0b0101, value: 0b0100 })
})

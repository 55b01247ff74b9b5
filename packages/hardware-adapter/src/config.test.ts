import * as v from 'valibot'
import { expect, test } from 'vitest'
import { adapterSection } from './config.ts'

const parse = (adapter: unknown) => v.safeParse(adapterSection.schema, { adapter })

test('§2.6 without a section adapters are found by themselves, and no bus of the kernel is touched', () => {
  const { adapter } = v.parse(adapterSection.schema, {})
  expect(adapter).toEqual({ transport: 'auto' })
})

test.each([
  [{ transport: 'usb' }],
  [{ i2c: '/dev/i2c-1/../sda' }],
  [{ i2c: '/dev/spidev0.0' }],
  [{ spi: '/dev/spidev0' }],
  [{ i2c_speed_hz: 9_999 }],
  [{ i2c_speed_hz: 1_000_001 }],
  [{ spi_speed_hz: 50_000_001 }],
  [{ spi_mode: 4 }],
  [{ pull_ups: 1 }],
  [{ volts: 12 }],
  [{ speed: 1 }],
])('%j is refused', (adapter) => {
  expect(parse(adapter).success).toBe(false)
})

test('every setting is taken within its bounds', () => {
  const adapter = { transport: 'linux', i2c: '/dev/i2c-1', spi: '/dev/spidev0.1', i2c_speed_hz: 400_000, spi_speed_hz: 10_000, spi_mode: 3 }
  expect(parse({ ...adapter, pull_ups: true, volts: 3.3 }).success).toBe(true)
})

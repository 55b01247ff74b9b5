import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { adapterSection } from './config.ts'

const parse = (adapter: unknown) => v.safeParse(adapterSection.schema, { adapter })

describe('[peripherals.adapter]', () => {
  test('defaults to USB adapters without a bus of the kernel', () => {
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
  ])('rejects %j', (adapter) => {
    expect(parse(adapter).success).toBe(false)
  })

  test('accepts every setting within its bounds', () => {
    const adapter = {
      transport: 'linux',
      i2c: '/dev/i2c-1',
      spi: '/dev/spidev0.1',
      i2c_speed_hz: 400_000,
      spi_speed_hz: 10_000,
      spi_mode: 3,
    }
    expect(parse({ ...adapter, pull_ups: true, volts: 3.3 }).success).toBe(true)
  })
})

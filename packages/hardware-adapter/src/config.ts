/** `[peripherals.adapter]`: which I2C/SPI/GPIO adapters are used, and how their buses are driven. */
import { isDevicePath, peripheralKeys } from '@sluice/hardware'
import { whole } from '@sluice/sdk'
import * as v from 'valibot'

/** The values of settings that are not given: speeds that nearly every chip supports, and the most common SPI mode. */
export const DEFAULTS = { i2cSpeedHz: 100_000, spiSpeedHz: 1_000_000, spiMode: 0 } as const

export const SPI_SPEED = whole(10_000, 50_000_000)
export const SPI_MODE = v.picklist([0, 1, 2, 3])

const adapter = v.strictObject({
  transport: v.optional(
    v.pipe(
      v.picklist(['auto', 'linux', 'sim', 'off']),
      v.description('`auto`: USB adapters and the paths below; `linux`: the paths alone; `sim`: simulated; `off`: none'),
    ),
    'auto',
  ),
  i2c: v.optional(
    v.pipe(
      v.string(),
      v.check((path) => isDevicePath(path, 'i2c'), 'must be a device such as /dev/i2c-1'),
      v.description("The kernel's I2C bus to use; no bus of the kernel is used unless it is named"),
    ),
  ),
  spi: v.optional(
    v.pipe(
      v.string(),
      v.check((path) => isDevicePath(path, 'spi'), 'must be a device such as /dev/spidev0.0'),
      v.description("The kernel's SPI device to use; no device of the kernel is used unless it is named"),
    ),
  ),
  i2c_speed_hz: v.optional(v.pipe(whole(10_000, 1_000_000), v.description('I2C clock; default 100000'))),
  spi_speed_hz: v.optional(v.pipe(SPI_SPEED, v.description('SPI clock; default 1000000'))),
  spi_mode: v.optional(v.pipe(SPI_MODE, v.description('SPI mode; default 0'))),
  pull_ups: v.optional(v.pipe(v.boolean(), v.description("Whether the adapter's own pull-up resistors are on; default false"))),
  volts: v.optional(v.pipe(v.picklist([1.8, 3.3, 5]), v.description("Level of the lines; default: the adapter's own setting"))),
})

export type AdapterSettings = v.InferOutput<typeof adapter>

export const adapterSection = {
  path: 'peripherals',
  schema: v.object({
    ...peripheralKeys,
    adapter: v.optional(v.pipe(adapter, v.description('The I2C/SPI adapter')), {}),
  }),
} as const

export type AdapterConfig = v.InferOutput<typeof adapterSection.schema>

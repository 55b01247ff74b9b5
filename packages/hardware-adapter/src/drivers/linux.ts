/** The kernel's own I2C and SPI buses as one adapter: only the buses that the configuration names. */
import type { Adapter, Spi } from '../adapter.ts'
import { groupAccess, openError } from '../adapter-errors.ts'
import { type AdapterSettings, DEFAULTS } from '../config.ts'
import type { Native } from '../native.ts'
import { linuxI2c } from './linux-i2c.ts'

export function linuxAdapter(native: Native, { i2c, spi }: AdapterSettings): Adapter {
  return {
    name: ['Linux', i2c, spi].filter((part) => part !== undefined).join(' '),
    // The device tree sets the clock of an I2C bus of the kernel.
    abilities: { spiModes: [0, 1, 2, 3], spiSpeedHz: [1, 100_000_000], pullUps: false, volts: [] },
    ...(i2c !== undefined && { i2c: linuxI2c(native, i2c) }),
    ...(spi !== undefined && { spi: linuxSpi(native, spi) }),
    close: async () => {},
  }
}

function linuxSpi(native: Native, path: string): Spi {
  const failure = (error: unknown): never => {
    throw openError(error, path, groupAccess('spi'))
  }
  return {
    async transfer(bytes, { mode, speedHz = DEFAULTS.spiSpeedHz }) {
      const port = await native.openSpi(path, mode).catch(failure)
      try {
        return await port.transfer(bytes, speedHz).catch(failure)
      } finally {
        await port.close().catch(() => undefined)
      }
    },
  }
}

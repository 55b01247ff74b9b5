/** In the guest: an I2C bus whose chips store what is written to them (SMBus only, no raw transfers). */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** For `VmCase.modules`. Each address is a chip with 256 registers that start at zero. */
export const i2cStubModules = (...addresses: readonly number[]): readonly string[] => [
  `i2c-stub chip_addr=${addresses.map((address) => `0x${address.toString(16)}`).join(',')}`,
  'i2c-dev',
]

/** The path of the bus, `/dev/i2c-<n>`. */
export async function i2cStubPath(): Promise<string> {
  const buses = '/sys/class/i2c-dev'
  for (const bus of await readdir(buses))
    if ((await readFile(join(buses, bus, 'name'), 'utf8')).startsWith('SMBus stub')) return join('/dev', bus)
  throw new Error('there is no simulated I2C bus: add i2cStubModules() to the modules of the case')
}

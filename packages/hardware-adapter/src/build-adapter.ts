/** The feature's parts on given native packages and places, so that both can be others in a test. */
import { createDeviceGuard } from '@sluice/hardware'
import type { Host, Parts } from '@sluice/sdk'
import { createAdapters, type Places } from './adapters.ts'
import type { AdapterConfig } from './config.ts'
import { datasheet } from './datasheet.ts'
import { gpioAdapter } from './gpio-adapter.ts'
import { i2cRead, i2cScan, i2cWrite } from './i2c-tools.ts'
import type { Native } from './native.ts'
import { spiTransfer } from './spi-transfer.ts'

export function buildAdapter(host: Host, config: AdapterConfig, { native, places }: { native: Native; places: Places }): Parts {
  const { adapter: settings } = config
  const adapters = createAdapters(host, native, { settings, places })
  const kit = { adapters, guard: createDeviceGuard(host, config) }
  return {
    tools: [i2cScan(kit), i2cRead(kit), i2cWrite(kit), spiTransfer(kit, settings), gpioAdapter(kit), datasheet(host, adapters)],
    ...(settings.transport === 'off' && { off: 'transport under [peripherals.adapter] is off' }),
    async check() {
      const { checkAdapters } = await import('./when-needed.ts')
      return checkAdapters({ adapters, native, settings, places })
    },
    // What is connected shows in the background: a slow bus holds up no start.
    register: async () => adapters.start(),
    close: () => adapters.close(),
  }
}

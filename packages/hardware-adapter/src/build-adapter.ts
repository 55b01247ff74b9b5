/** Builds the parts of the feature. Tests pass their own native packages and system paths. */
import { createDeviceGuard, type HeldDevices } from '@sluice/hardware'
import type { HardwareBoard, Host, Parts } from '@sluice/sdk'
import { Adapters } from './adapters.ts'
import type { AdapterConfig } from './config.ts'
import type { AdapterEnvironment } from './find-adapters.ts'
import { datasheet } from './tools/datasheet.ts'
import { gpioAdapter } from './tools/gpio-adapter.ts'
import { i2cRead, i2cScan, i2cWrite } from './tools/i2c-tools.ts'
import { spiTransfer } from './tools/spi-transfer.ts'

export function buildAdapter(host: Host, config: AdapterConfig, { native, paths }: AdapterEnvironment): Parts {
  const { adapter: settings } = config
  const adapters = new Adapters(host, native, { settings, paths })
  const guard = createDeviceGuard(host, config)
  const kit = { adapters, guard }
  return {
    tools: [i2cScan(kit), i2cRead(kit), i2cWrite(kit), spiTransfer(kit, settings), gpioAdapter(kit), datasheet(host, adapters)],
    ...(settings.transport === 'off' && { disabledReason: 'transport under [peripherals.adapter] is off' }),
    hardware: { boards: async () => shownAdapters(adapters, await guard.held()) },
    async check() {
      const { checkAdapters } = await import('./lazy.ts')
      return checkAdapters(adapters, settings, { native, paths })
    },
    // The search runs in the background, so that a slow bus does not delay the start.
    register: async () => void adapters.start(),
    close: () => adapters.close(),
  }
}

/** Returns the adapters as operators see them. */
const shownAdapters = (adapters: Adapters, { holders, pins }: HeldDevices): HardwareBoard[] =>
  adapters.present().map(({ alias, adapter, found }) => ({
    name: alias,
    title: adapter.name,
    transport: 'usb',
    path: found.path,
    connected: true,
    holder: holders.get(alias) ?? null,
    pins: pins.get(alias) ?? [],
  }))

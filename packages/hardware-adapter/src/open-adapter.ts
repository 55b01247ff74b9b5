/** Makes of a found adapter one that works; nothing is opened before its first use. */
import type { Clock } from '@sluice/sdk'
import type { Adapter } from './adapter.ts'
import { ch341a } from './ch341a.ts'
import { I2C_SPEED_RANGE as CH341A_SPEEDS } from './ch341a-packet.ts'
import { type AdapterSettings, DEFAULTS } from './config.ts'
import { CH341A_ID, type FoundAdapter, MCP2221_ID, type UsbId, usbDigits } from './found-adapter.ts'
import { linuxAdapter } from './linux-adapter.ts'
import { mcp2221 } from './mcp2221.ts'
import { I2C_SPEED_RANGE as MCP2221_SPEEDS } from './mcp2221-report.ts'
import type { Native } from './native.ts'
import { openError, udevAccess } from './open-error.ts'
import { simulated } from './simulated.ts'
import { within } from './unmet-settings.ts'

export interface Opening {
  readonly clock: Pick<Clock, 'sleep'>
  readonly native: Native
  readonly settings: AdapterSettings
}

export function openAdapter({ kind, path, usb }: FoundAdapter, { clock, native, settings }: Opening): Adapter {
  const speedHz = settings.i2c_speed_hz ?? DEFAULTS.i2cSpeedHz
  switch (kind) {
    case 'mcp2221': {
      const open = () => native.openHid(path).catch(refuse(`MCP2221 at ${path}`, accessTo(MCP2221_ID)))
      return mcp2221({ clock, i2cSpeedHz: within(speedHz, MCP2221_SPEEDS), open })
    }
    case 'ch341a': {
      const { vendor, product } = CH341A_ID
      const open = () =>
        native.openUsb({ vendor, product, bus: '', address: 0, ...usb }).catch(refuse(`CH341A at ${path}`, accessTo(CH341A_ID)))
      return ch341a({ clock, i2cSpeedHz: within(speedHz, CH341A_SPEEDS), open })
    }
    case 'linux':
      return linuxAdapter(native, settings)
    case 'sim':
      return simulated({ pullUps: settings.pull_ups ?? false })
  }
}

/** What gives access to such a device, as the end of a sentence. */
export const accessTo = ({ kind, vendor, product }: UsbId): string =>
  udevAccess(kind === 'mcp2221' ? 'hidraw' : 'usb', usbDigits(vendor), usbDigits(product))

const refuse =
  (what: string, access: string) =>
  (error: unknown): never => {
    throw openError(error, { what, access })
  }

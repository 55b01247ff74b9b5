/** Creates the driver for an adapter that was found, and compares its abilities with the configuration. */
import type { Clock } from '@sluice/sdk'
import { type Adapter, clampSpeed } from './adapter.ts'
import { openError, udevAccess } from './adapter-errors.ts'
import { type AdapterSettings, DEFAULTS } from './config.ts'
import { ch341a } from './drivers/ch341a.ts'
import { I2C_SPEED_RANGE as CH341A_SPEEDS } from './drivers/ch341a-packet.ts'
import { linuxAdapter } from './drivers/linux.ts'
import { mcp2221 } from './drivers/mcp2221.ts'
import { I2C_SPEED_RANGE as MCP2221_SPEEDS } from './drivers/mcp2221-report.ts'
import { simulated } from './drivers/simulated.ts'
import { CH341A_ID, type FoundAdapter, MCP2221_ID, type UsbId } from './find-adapters.ts'
import type { Native } from './native.ts'

/** Creates the driver. The device itself is opened on first use. */
export function openAdapter(
  { kind, path, usb }: FoundAdapter,
  settings: AdapterSettings,
  { clock, native }: { readonly clock: Clock; readonly native: Native },
): Adapter {
  const speedHz = settings.i2c_speed_hz ?? DEFAULTS.i2cSpeedHz
  switch (kind) {
    case 'mcp2221': {
      const open = () => native.openHid(path).catch(rethrow(`MCP2221 at ${path}`, accessTo(MCP2221_ID)))
      return mcp2221(clock, clampSpeed(speedHz, MCP2221_SPEEDS), open)
    }
    case 'ch341a': {
      const { vendor, product } = CH341A_ID
      const open = () =>
        native.openUsb({ vendor, product, bus: '', address: 0, ...usb }).catch(rethrow(`CH341A at ${path}`, accessTo(CH341A_ID)))
      return ch341a(clock, clampSpeed(speedHz, CH341A_SPEEDS), open)
    }
    case 'linux':
      return linuxAdapter(native, settings)
    case 'sim':
      return simulated({ pullUps: settings.pull_ups ?? false })
  }
}

/** Returns how to gain access to such a device, as the end of a sentence. */
export const accessTo = ({ kind, vendor, product }: UsbId): string =>
  udevAccess(kind === 'mcp2221' ? 'hidraw' : 'usb', fourDigits(vendor), fourDigits(product))

const fourDigits = (id: number): string => id.toString(16).padStart(4, '0')

const rethrow =
  (device: string, access: string) =>
  (error: unknown): never => {
    throw openError(error, device, access)
  }

/**
 * Returns a sentence without a full stop for each setting that the adapter does not support. SPI settings are not included: a call
 * with an unsupported one fails.
 */
export function unsupportedSettings({ i2c_speed_hz, pull_ups, volts }: AdapterSettings, adapter: Adapter): readonly string[] {
  const { name, abilities, i2c } = adapter
  const sentences: string[] = []
  if (i2c && i2c_speed_hz !== undefined) {
    const range = abilities.i2cSpeedHz
    if (!range) sentences.push(`${name} has a fixed I2C clock: i2c_speed_hz has no effect`)
    else if (clampSpeed(i2c_speed_hz, range) !== i2c_speed_hz)
      sentences.push(
        `${name} runs I2C at ${range[0]} to ${range[1]} Hz: it uses ${clampSpeed(i2c_speed_hz, range)} Hz instead of i2c_speed_hz = ${i2c_speed_hz}`,
      )
  }
  if (pull_ups && !abilities.pullUps) sentences.push(`${name} has no switchable pull-up resistors: add resistors to the bus`)
  if (volts !== undefined && !abilities.volts.includes(volts))
    sentences.push(`${name} cannot be set to ${volts} V: its wiring sets the level, so check it before connecting anything`)
  return sentences
}

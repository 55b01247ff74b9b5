/** Selects the device that a call refers to. */
import { AppError } from '@sluice/sdk'
import type { Device, UsbSeen } from '../devices.ts'
import { usbText } from './usb.ts'

const USB_NAMED_MAX = 10

/** See `Devices.pick`. */
export function pickDevice(
  all: readonly Device[],
  seen: readonly UsbSeen[],
  alias: string | undefined,
  fits: (device: Device) => boolean,
): Device {
  if (alias !== undefined) {
    const named = all.find((device) => device.alias === alias)
    if (!named)
      throw new AppError('not_found', `There is no device ${JSON.stringify(alias)}. ${all.length > 0 ? known(all) : noBoards(seen)}`)
    if (!fits(named)) throw new AppError('invalid_request', `${alias} is not a device that can do this`)
    return named
  }
  const fitting = all.filter(fits)
  const connected = fitting.filter((device) => device.connected)
  const [only, ...others] = connected.length > 0 ? connected : fitting
  if (!only)
    throw new AppError(
      'not_found',
      all.length > 0 ? `No device that can do this is connected. ${known(all)}` : `No device was found. ${noBoards(seen)}`,
    )
  if (others.length > 0)
    throw new AppError(
      'invalid_request',
      `Several devices can do this; name one: ${[only, ...others].map((device) => device.alias).join(', ')}`,
    )
  return only
}

const known = (all: readonly Device[]): string =>
  `Known: ${all.map(({ alias, connected }) => (connected ? alias : `${alias} (not connected)`)).join(', ')}`

function noBoards(seen: readonly UsbSeen[]): string {
  if (seen.length === 0) return 'USB shows no devices'
  const named = seen.slice(0, USB_NAMED_MAX).map(usbText)
  return `USB shows no known board, only ${named.join(', ')}${seen.length > named.length ? ', …' : ''}`
}

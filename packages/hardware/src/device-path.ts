/**
 * Checks every device path before it is opened: only a real device node below /dev passes, under its own name or, for a serial port, under a
 * name that Linux gives it below /dev/serial and that stays the same.
 */
import { lstat, realpath } from 'node:fs/promises'
import { AppError } from '@sluice/sdk'

export type DeviceKind = 'serial' | 'i2c' | 'spi' | 'gpio'

const NAMES: Readonly<Record<DeviceKind, RegExp>> = {
  serial: /^(?:\/dev\/(?:ttyACM|ttyUSB|ttyAMA|ttyGS)\d{1,3}|\/dev\/(?:tty|cu)\.usb(?:modem|serial)[\w-]{0,64}|COM\d{1,3})$/,
  i2c: /^\/dev\/i2c-\d{1,3}$/,
  spi: /^\/dev\/spidev\d{1,3}\.\d{1,2}$/,
  gpio: /^\/dev\/gpiochip\d{1,3}$/,
}

const EXAMPLES: Readonly<Record<DeviceKind, string>> = {
  serial: '/dev/ttyACM0, /dev/ttyUSB0, /dev/serial/by-id/… or COM3',
  i2c: '/dev/i2c-1',
  spi: '/dev/spidev0.0',
  gpio: '/dev/gpiochip0',
}

const SERIAL_LINK = /^\/dev\/serial\/by-(?:id|path)\/\w[\w.:,+@-]{0,199}$/

/** Returns whether a path has the form of a device of this kind. Does not check that the device exists. */
export const isDevicePath = (path: string, kind: DeviceKind): boolean =>
  NAMES[kind].test(path) || (kind === 'serial' && SERIAL_LINK.test(path))

/** Returns the path under which a scan shows a serial port: that of the device for a link below /dev/serial, else the path itself. */
export const scannedPath = (path: string): Promise<string> =>
  SERIAL_LINK.test(path) ? realpath(path).catch(() => path) : Promise.resolve(path)

/**
 * Throws `invalid_request` when the path does not have the form of such a device, `not_found` when nothing is there, `forbidden`
 * when the path is not a device node (a file or a symbolic link), and `unavailable` when it cannot be inspected.
 */
export async function checkDevicePath(path: string, kind: DeviceKind): Promise<void> {
  if (!isDevicePath(path, kind))
    throw new AppError(
      'invalid_request',
      `${JSON.stringify(path.slice(0, 255))} is not a ${kind} device path; use one like ${EXAMPLES[kind]}`,
    )
  // Only Windows has COM ports. Elsewhere the name would be a file in the current folder.
  if (path.startsWith('COM') && process.platform === 'win32') return
  if (path.startsWith('COM')) throw new AppError('not_found', `There is no ${path}`)
  const isLink = SERIAL_LINK.test(path)
  const target = isLink ? await scannedPath(path) : path
  if (isLink && target === path) throw new AppError('not_found', `There is no ${path}`)
  if (isLink && !NAMES.serial.test(target)) throw new AppError('forbidden', `${path} leads to ${target}, which is not a serial port`)
  const found = await lstat(target).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') throw new AppError('not_found', `There is no ${path}`)
    throw new AppError('unavailable', `${path} cannot be inspected: ${cause.message}`, { cause })
  })
  if (!found.isCharacterDevice()) throw new AppError('forbidden', `${path} is not a device node`)
}

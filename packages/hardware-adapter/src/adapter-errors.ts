/** The errors of buses and adapters. Each sentence is written here once, with the cure where there is one. */
import { AppError, errorText } from '@sluice/sdk'
import { hexByte } from './hex.ts'

export const notAcknowledged = (address: number): AppError => new AppError('not_found', `No device acknowledges at ${hexByte(address)}`)

export const dataNotAcknowledged = (address: number): AppError =>
  new AppError('upstream', `The device at ${hexByte(address)} did not acknowledge all of the data`)

export const stuckBus = (detail: string): AppError =>
  new AppError('upstream_timeout', `The I2C bus hangs: ${detail}; check pull-up resistors, power and wiring`)

export const noAnswer = (name: string): AppError => new AppError('upstream_timeout', `The ${name} does not answer`)

/** The adapter's answer breaks its protocol; `detail` says how. */
export const invalidAnswer = (name: string, detail: string): AppError =>
  new AppError('upstream', `The ${name} sent an invalid answer: ${detail}`)

export const adapterLost = (name: string, cause: unknown): AppError =>
  new AppError('unavailable', `The ${name} was unplugged or stopped working: ${errorText(cause)}`, { cause })

/** Returns whether the adapter stays usable after `error`: a device on the bus failed, or the request was refused before it was sent. */
export const leavesAdapterUsable = (error: unknown): boolean =>
  error instanceof AppError && (error.code === 'not_found' || error.code === 'invalid_request')

const DENIED = /\b(?:EACCES|EPERM|permission denied|access denied|operation not permitted|insufficient permissions)\b/i
const BUSY = /\b(?:EBUSY|busy|in use|already claimed)\b/i

/**
 * Turns the failure to open a device into an `unavailable` error; an `AppError` is returned as it is. `device` names the device, such
 * as `MCP2221 at /dev/hidraw0`; `access` says how to gain permission, as the end of a sentence.
 */
export function openError(cause: unknown, device: string, access: string): AppError {
  if (cause instanceof AppError) return cause
  const text = `${systemCode(cause)} ${errorText(cause)}`
  if (DENIED.test(text)) return new AppError('unavailable', `No permission for ${device}: ${access}`, { cause })
  if (BUSY.test(text)) return new AppError('unavailable', `${device} is in use by another program or a kernel driver`, { cause })
  return new AppError('unavailable', `${device} cannot be opened: ${errorText(cause)}`, { cause })
}

/** Returns the system's error code, such as `ENXIO`; empty when the error has none. */
export const systemCode = (error: unknown): string => (error as NodeJS.ErrnoException | undefined)?.code ?? ''

/** Returns how to gain access through a group, as the end of a sentence. */
export const groupAccess = (group: string): string =>
  `add the daemon's user to the group \`${group}\` (\`usermod -aG ${group} USER\`) and restart the daemon`

/** Returns how to gain access through a udev rule, as the end of a sentence. `vendor` and `product` are four hexadecimal digits. */
export function udevAccess(subsystem: 'usb' | 'hidraw', vendor: string, product: string): string {
  const attribute = subsystem === 'usb' ? 'ATTR' : 'ATTRS'
  const rule = `SUBSYSTEM=="${subsystem}", ${attribute}{idVendor}=="${vendor}", ${attribute}{idProduct}=="${product}", MODE="0660", GROUP="plugdev"`
  return `put \`${rule}\` into /etc/udev/rules.d/70-sluice.rules, ${groupAccess('plugdev')}, and plug it in again`
}

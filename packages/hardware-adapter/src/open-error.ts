/** Why a device cannot be opened, with what mends it. */
import { AppError, errorText } from '@sluice/sdk'

export interface Opened {
  /** For people: `MCP2221 at /dev/hidraw0`. */
  readonly what: string
  /** The group or udev rule that gives access, as the end of a sentence. */
  readonly access: string
}

const DENIED = /\b(?:EACCES|EPERM|permission denied|access denied|operation not permitted|insufficient permissions)\b/i
const BUSY = /\b(?:EBUSY|busy|in use|already claimed)\b/i

/** Throws nothing: the error to throw, `unavailable` in every case. */
export function openError(cause: unknown, { what, access }: Opened): AppError {
  if (cause instanceof AppError) return cause
  const said = `${codeOf(cause)} ${errorText(cause)}`
  if (DENIED.test(said)) return new AppError('unavailable', `No permission for ${what}: ${access}`, { cause })
  if (BUSY.test(said)) return new AppError('unavailable', `${what} is in use by another program or a driver of the kernel`, { cause })
  return new AppError('unavailable', `${what} cannot be opened: ${errorText(cause)}`, { cause })
}

export const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException | undefined)?.code ?? ''

export const groupAccess = (group: string): string =>
  `add the daemon's user to the group \`${group}\` (\`usermod -aG ${group} USER\`) and start it anew`

/** A rule for `/etc/udev/rules.d`; `subsystem` is `usb` or `hidraw`. */
export function udevAccess(subsystem: 'usb' | 'hidraw', vendor: string, product: string): string {
  const attribute = subsystem === 'usb' ? 'ATTR' : 'ATTRS'
  const rule = `SUBSYSTEM=="${subsystem}", ${attribute}{idVendor}=="${vendor}", ${attribute}{idProduct}=="${product}", MODE="0660", GROUP="plugdev"`
  return `put \`${rule}\` into /etc/udev/rules.d/70-sluice.rules, ${groupAccess('plugdev')}, and plug it in again`
}

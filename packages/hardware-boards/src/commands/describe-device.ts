/** Boards and what USB shows, as lines and as JSON. What devices call themselves is made safe for terminals. */
import type { Device, UsbSeen } from '../devices.ts'
import { lacksSerial } from '../native.ts'
import { plainText } from '../protocol/frame.ts'
import { deniedAccess } from '../transports/port-access.ts'

export const whatItIs = ({ board }: Pick<Device, 'board'>): string => (board ? `${board.name} (${board.chip})` : 'a board of no known kind')

export const whereItIs = ({ path, transport }: Device): string => (path === null ? `(${transport})` : path)

/** Says whether the device is there and, of a serial port, whether it can be opened. */
async function stateOf({ connected, transport, path }: Device): Promise<string> {
  if (!connected) return 'not connected'
  const denied = transport === 'serial' && path !== null ? await deniedAccess(path) : undefined
  if (denied) return `cannot be opened: ${denied.detail}; ${denied.fix}`
  const lacking = transport === 'serial' ? lacksSerial() : undefined
  return lacking === undefined ? 'connected' : `cannot be opened: ${lacking}`
}

export const deviceLine = async (device: Device): Promise<string> =>
  [`  ${device.alias.padEnd(12)}`, whereItIs(device).padEnd(16), whatItIs(device).padEnd(24), await stateOf(device)].join('  ')

export const deviceJson = ({ alias, board, transport, path, baud, usb, connected }: Device) => ({
  alias,
  board: board?.name ?? null,
  chip: board?.chip ?? null,
  transport,
  path,
  baud,
  usb: usb && { ...usb, manufacturer: usb.manufacturer && plainText(usb.manufacturer) },
  connected,
})

export const usbName = ({ name }: UsbSeen): string => plainText(name)

/** Boards and what USB shows, as lines and as JSON. What devices call themselves is made safe for terminals. */
import type { Device, UsbSeen } from '../devices.ts'
import { plainText } from '../protocol/frame.ts'

export const whatItIs = ({ board }: Pick<Device, 'board'>): string => (board ? `${board.name} (${board.chip})` : 'a board of no known kind')

export const whereItIs = ({ path, transport }: Device): string => (path === null ? `(${transport})` : path)

export const deviceLine = (device: Device): string =>
  [
    `  ${device.alias.padEnd(12)}`,
    whereItIs(device).padEnd(16),
    whatItIs(device).padEnd(24),
    device.connected ? 'connected' : 'not connected',
  ].join('  ')

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

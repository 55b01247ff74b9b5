/** `sluice hardware discover` and `sluice peripheral list`: show the boards, as lines or as JSON. */
import { BOARDS, boardOfUsb } from '@sluice/hardware'
import { boardText, type Device } from '../devices.ts'
import { missingSerial } from '../native.ts'
import { plainText } from '../protocol/frame.ts'
import { deniedAccess } from '../transports/port-access.ts'
import { refuseArguments } from './read-arguments.ts'
import type { RunCommand } from './run-command.ts'

const EXAMPLE = ['[peripherals]', 'enabled = true', '', '[[peripherals.boards]]', 'board = "board_a"', 'path = "/dev/ttyACM0"']

export const discover: RunCommand = async ({ config, devices }, context) => {
  refuseArguments(context, 'hardware discover')
  if (!config.discover) context.warn('USB is not scanned, because [peripherals] has discover = false.')
  const found = await devices.discover(context.signal)
  const missing = missingSerial()
  if (missing !== undefined) context.warn(`Boards on USB cannot be reached: ${missing}.`)
  // Devices supply their names, so control characters are removed.
  const usb = devices.seen().map((seen) => ({ ...seen, name: plainText(seen.name), board: boardOfUsb(seen.vendor, seen.product) }))
  if (context.json) {
    const known = BOARDS.map(({ name, chip, usb: ids }) => ({ name, chip, usb: ids }))
    context.print(
      JSON.stringify({ usb: usb.map((seen) => ({ ...seen, board: seen.board?.name ?? null })), devices: found.map(deviceJson), known }),
    )
    return 0
  }
  if (usb.length > 0) context.print('USB devices:')
  else if (missing === undefined) context.print('USB shows no devices. Connect a board and try again.')
  for (const { vendor, product, name, board } of usb) {
    context.print(
      `  ${vendor}:${product}  ${(board?.name ?? '(unknown)').padEnd(12)}  ${(board?.architecture ?? '').padEnd(30)}  ${name}`.trimEnd(),
    )
  }
  if (found.length > 0) context.print('\nBoards, by alias:')
  for (const device of found) context.print(await deviceLine(device))
  context.print(`\nKnown boards: ${BOARDS.map(({ name, chip }) => `${name} (${chip})`).join(', ')}`)
  return 0
}

export const list: RunCommand = async ({ config, devices }, context) => {
  refuseArguments(context, 'peripheral list')
  const found = await devices.discover(context.signal)
  if (context.json) {
    context.print(JSON.stringify({ enabled: config.enabled, configured: config.boards, devices: found.map(deviceJson) }))
    return 0
  }
  if (config.boards.length === 0) {
    context.print("No boards are configured. Run 'sluice peripheral add', or write to the configuration file:")
    for (const line of EXAMPLE) context.print(line && `  ${line}`)
  } else {
    context.print('Configured peripherals:')
    for (const { board, transport, path } of config.boards)
      context.print(`  ${board.padEnd(14)}  ${transport.padEnd(8)}  ${path ?? `(${transport})`}`)
    if (!config.enabled) context.warn('They are not used: set enabled = true under [peripherals].')
  }
  context.print(found.length === 0 ? '\nNo board is connected.' : '\nBoards, by alias:')
  for (const device of found) context.print(await deviceLine(device))
  return 0
}

/** Returns the alias, place, board and state of a device in columns. */
export const deviceLine = async (device: Device): Promise<string> => {
  const { alias, path, transport } = device
  const where = path === null ? `(${transport})` : path
  return [`  ${alias.padEnd(12)}`, where.padEnd(16), boardText(device).padEnd(24), await stateOf(device)].join('  ')
}

/** Returns whether the device is connected and, for a serial port, why it cannot be opened. */
async function stateOf({ connected, transport, path }: Device): Promise<string> {
  if (!connected) return 'not connected'
  const denied = transport === 'serial' && path !== null ? await deniedAccess(path) : undefined
  if (denied) return `cannot be opened: ${denied.detail}; ${denied.fix}`
  const missing = transport === 'serial' ? missingSerial() : undefined
  return missing === undefined ? 'connected' : `cannot be opened: ${missing}`
}

const deviceJson = ({ alias, board, transport, path, baud, usb, connected }: Device) => ({
  alias,
  board: board?.name ?? null,
  chip: board?.chip ?? null,
  transport,
  path,
  baud,
  usb: usb && { ...usb, manufacturer: usb.manufacturer && plainText(usb.manufacturer) },
  connected,
})

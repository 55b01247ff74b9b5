/** `sluice hardware discover`: what is on USB and what of it Sluice knows. */
import { BOARDS, boardOfUsb } from '@sluice/hardware'
import { lacksSerial } from '../native.ts'
import type { RunCommand } from './commands.ts'
import { deviceJson, deviceLine, usbName } from './describe-device.ts'
import { noArguments } from './read-arguments.ts'

export const discover: RunCommand = async ({ config, devices }, context) => {
  noArguments(context, 'hardware discover')
  if (!config.discover) context.warn('USB is not looked at: discover = false stands under [peripherals].')
  const found = await devices.discover(context.signal)
  const lacking = lacksSerial()
  if (lacking !== undefined) context.warn(`Boards on USB cannot be reached: ${lacking}.`)
  const usb = devices.seen().map((seen) => ({ ...seen, name: usbName(seen), board: boardOfUsb(seen.vendor, seen.product) }))
  if (context.json) {
    const known = BOARDS.map(({ name, chip, usb: ids }) => ({ name, chip, usb: ids }))
    context.print(
      JSON.stringify({ usb: usb.map((seen) => ({ ...seen, board: seen.board?.name ?? null })), devices: found.map(deviceJson), known }),
    )
    return 0
  }
  if (usb.length > 0) context.print('USB devices:')
  else if (lacking === undefined) context.print('USB shows no devices. Connect a board and try again.')
  for (const { vendor, product, name, board } of usb) {
    context.print(
      `  ${vendor}:${product}  ${(board?.name ?? '(unknown)').padEnd(12)}  ${(board?.architecture ?? '').padEnd(30)}  ${name}`.trimEnd(),
    )
  }
  if (found.length > 0) context.print('\nBoards, by the alias tools take:')
  for (const device of found) context.print(await deviceLine(device))
  context.print(`\nKnown boards: ${BOARDS.map(({ name, chip }) => `${name} (${chip})`).join(', ')}`)
  return 0
}

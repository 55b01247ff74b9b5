/** `sluice peripheral list`: what is configured, and what is there. */
import type { RunCommand } from './commands.ts'
import { deviceJson, deviceLine } from './describe-device.ts'
import { noArguments } from './read-arguments.ts'

const EXAMPLE = ['[peripherals]', 'enabled = true', '', '[[peripherals.boards]]', 'board = "board_a"', 'path = "/dev/ttyACM0"']

export const list: RunCommand = async ({ config, devices }, context) => {
  noArguments(context, 'peripheral list')
  const found = await devices.discover(context.signal)
  if (context.json) {
    context.print(JSON.stringify({ enabled: config.enabled, configured: config.boards, devices: found.map(deviceJson) }))
    return 0
  }
  if (config.boards.length === 0) {
    context.print("No boards are configured. 'sluice peripheral add' adds one, as does this in the configuration file:")
    for (const line of EXAMPLE) context.print(line && `  ${line}`)
  } else {
    context.print('Configured peripherals:')
    for (const { board, transport, path } of config.boards)
      context.print(`  ${board.padEnd(14)}  ${transport.padEnd(8)}  ${path ?? `(${transport})`}`)
    if (!config.enabled) context.warn('They are not used: set enabled = true under [peripherals].')
  }
  context.print(found.length === 0 ? '\nNothing is connected.' : '\nBoards, by the alias tools take:')
  for (const device of found) context.print(await deviceLine(device))
  return 0
}

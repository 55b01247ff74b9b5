/** `sluice hardware info`: what a chip says of itself. */
import { parseArgs } from 'node:util'
import { AppError, CATALOGUE, type Command, errorText } from '@sluice/sdk'
import { liveBoardNamed } from './live-boards.ts'
import { defaultBoard } from './memory-read.ts'
import { hexAddress, type Probe } from './probe.ts'

const KIB = 1024

export const infoCommand = (probe: Probe, boards: readonly string[]): Command => ({
  name: 'hardware info',
  ...CATALOGUE['hardware-probe'].commandHelp['hardware info'],
  async run({ args, json, print, signal }) {
    const chip = chipIn(args)
    const board = chip === undefined ? defaultBoard(boards) : liveBoardNamed(chip)
    const info = await probe.info(board, signal)
    const { chip: name, architecture, memory, source, doubt } = info
    if (json) print(JSON.stringify({ board: board.name, chip: name, architecture, memory, source, ...(doubt !== undefined && { doubt }) }))
    else {
      print(`Board:        ${board.name}`)
      print(`Chip:         ${name}`)
      print(`Architecture: ${architecture}`)
      for (const { name: memoryName, start, length } of memory)
        print(`${`${memoryName}:`.padEnd(13)} ${hexAddress(start)} to ${hexAddress(start + length - 1)} (${length / KIB} KiB)`)
      print(`Read live through ${source}.`)
      if (doubt !== undefined) print(doubt)
    }
    return 0
  },
})

function chipIn(args: readonly string[]): string | undefined {
  try {
    return parseArgs({ args: [...args], options: { chip: { type: 'string' } } }).values.chip
  } catch (cause) {
    const [reason = ''] = errorText(cause).split(/\.? To specify|\n/)
    throw new AppError('invalid_request', `${reason.replace(/\.$/, '')}; usage: hardware info [--chip <board-or-chip>]`, { cause })
  }
}

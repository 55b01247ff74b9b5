/** The command `sluice hardware info`: shows what a chip reports about itself. */
import { parseArgs } from 'node:util'
import { AppError, CATALOGUE, type Command, errorText } from '@sluice/sdk'
import { defaultBoard, liveBoardNamed } from './live-boards.ts'
import { hexAddress } from './memory-range.ts'
import type { ChipReading, Probe } from './probe.ts'

const KIB = 1024

/** `boards` are the names of the configured boards. */
export const infoCommand = (probe: Probe, boards: readonly string[]): Command => ({
  name: 'hardware info',
  ...CATALOGUE['hardware-probe'].commandHelp['hardware info'],
  async run({ args, json, print, signal }) {
    const chip = chipOption(args)
    const board = chip === undefined ? defaultBoard(boards) : liveBoardNamed(chip)
    const reading = await probe.info(board, signal)
    for (const line of json ? [jsonLine(board.name, reading)] : textLines(board.name, reading)) print(line)
    return 0
  },
})

const jsonLine = (board: string, { chip, architecture, memory, source, warning }: ChipReading): string =>
  JSON.stringify({ board, chip, architecture, memory, source, ...(warning !== undefined && { doubt: warning }) })

const textLines = (board: string, { chip, architecture, memory, source, warning }: ChipReading): string[] => [
  `Board:        ${board}`,
  `Chip:         ${chip}`,
  `Architecture: ${architecture}`,
  ...memory.map(
    ({ name, start, length }) => `${`${name}:`.padEnd(13)} ${hexAddress(start)} to ${hexAddress(start + length - 1)} (${length / KIB} KiB)`,
  ),
  `Read live through ${source}.`,
  ...(warning === undefined ? [] : [warning]),
]

/** Returns the value of `--chip`. Throws `invalid_request` with the usage for other arguments. */
function chipOption(args: readonly string[]): string | undefined {
  try {
    return parseArgs({ args: [...args], options: { chip: { type: 'string' } } }).values.chip
  } catch (cause) {
    const [reason = ''] = errorText(cause).split(/\.? To specify|\n/)
    throw new AppError('invalid_request', `${reason.replace(/\.$/, '')}; usage: hardware info [--chip <board-or-chip>]`, { cause })
  }
}

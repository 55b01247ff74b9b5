/** `hardware_memory_read`: the live memory of a board's chip. */
import { type Board, boardNamed, type DeviceGuard } from '@sluice/hardware'
import { AppError, defineTool, type Tool, whole } from '@sluice/sdk'
import * as v from 'valibot'
import { hexDump } from './hex-dump.ts'
import { LIVE_NAMES, liveBoardNamed, liveChipOf } from './live-boards.ts'
import { parseAddress, wordsWithin } from './memory-range.ts'
import { hexAddress, type Probe } from './probe.ts'

const LENGTH_MAX = 256

export interface MemoryReadDeps {
  readonly probe: Probe
  readonly guard: DeviceGuard
  /** Names of the configured boards. */
  readonly boards: readonly string[]
}

export const memoryRead = ({ probe, guard, boards }: MemoryReadDeps): Tool =>
  defineTool({
    name: 'hardware_memory_read',
    description: `Reads live memory of a connected board's chip through its debug port, ${LIVE_NAMES}, and returns a hex dump. Reads flash and RAM only, and changes nothing.`,
    input: v.object({
      address: v.optional(
        v.pipe(v.string(), v.maxLength(32), v.description('First address, such as 0x20000000 (the start of RAM), or in decimal')),
        '0x20000000',
      ),
      length: v.optional(v.pipe(whole(1, LENGTH_MAX), v.description('Bytes')), 128),
      board: v.optional(v.pipe(v.string(), v.maxLength(64), v.description('The board; default: the configured one'))),
    }),
    risk: 'read',
    async run({ address: text, length, board: name }, context) {
      const board = name === undefined ? defaultBoard(boards) : liveBoardNamed(name)
      const address = parseAddress(text)
      const words = wordsWithin(board, address, length)
      const { bytes, source, doubt } = await guard.use({ device: board.name, tool: 'hardware_memory_read', context }, () =>
        probe.memory(board, words, context.signal),
      )
      const shown = bytes.subarray(0, address - words.address + length)
      return [
        `Live memory of ${board.name} (${board.chip}), read through ${source}:`,
        ...(doubt === undefined ? [] : [doubt]),
        ...(words.address === address ? [] : [`Read from ${hexAddress(words.address)} on: ${hexAddress(address)} is not aligned to 4.`]),
        hexDump(shown, words.address),
      ].join('\n')
    },
  })

/** The first configured one whose chip can be read. Throws `invalid_request` where there is none: no board is guessed. */
export function defaultBoard(boards: readonly string[]): Board {
  const board = boards.map(boardNamed).find((each) => each && liveChipOf(each))
  if (!board) throw new AppError('invalid_request', `Which board? No configured one can be read live: name ${LIVE_NAMES}`)
  return board
}

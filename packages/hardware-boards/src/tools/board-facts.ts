/** The chip and the memory of a board: read live where a debug probe reaches it, from its data sheet otherwise. */
import { BOARDS, type Board, boardNamed } from '@sluice/hardware'
import { AppError, type ChipInfo, errorText, type Host } from '@sluice/sdk'

export interface Facts {
  readonly board: Board
  readonly chip: string
  readonly architecture: string
  readonly memory: ChipInfo['memory']
  /** `live`, or `from the data sheet` with the reason when a live reading failed. */
  readonly source: string
}

/** Throws `invalid_request` with the names of all known boards. */
export function knownBoard(name: string): Board {
  const board = boardNamed(name)
  if (board) return board
  throw new AppError(
    'invalid_request',
    `There is no board ${JSON.stringify(name)}; the known boards are ${BOARDS.map((known) => known.name).join(', ')}`,
  )
}

export async function factsOf(host: Host, board: Board, signal: AbortSignal): Promise<Facts> {
  const { chip, architecture, memory } = board
  const sheet = { board, chip, architecture, memory, source: 'from the data sheet' }
  const probe = board.probeChip === undefined ? undefined : host.service('chipProbe')
  if (!probe) return sheet
  try {
    return { board, ...(await probe.info(board.name, signal)), source: 'live' }
  } catch (error) {
    if (signal.aborted) throw new AppError('aborted', 'The call was aborted')
    return {
      ...sheet,
      source: `from the data sheet; the live reading failed: ${error instanceof AppError ? errorText(error) : 'the probe failed'}`,
    }
  }
}

export const memoryLines = ({ memory, board }: Facts): string[] =>
  memory.length === 0
    ? [`The memory of ${board.name} is not known`]
    : memory.map(({ name, start, length }) => `${name}: ${hex(start)} - ${hex(start + length - 1)} (${Math.round(length / 1024)} KiB)`)

const hex = (address: number): string => `0x${address.toString(16).toUpperCase().padStart(8, '0')}`

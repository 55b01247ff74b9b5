/** What a board is and where its memory lies: live where a probe reaches it, else from its data sheet; and which is always said. */
import { BOARDS, type Board, boardNamed } from '@sluice/hardware'
import { AppError, type ChipInfo, errorText, type Host } from '@sluice/sdk'

export interface Facts {
  readonly board: Board
  readonly chip: string
  readonly architecture: string
  readonly memory: ChipInfo['memory']
  /** `live`, or `from the data sheet` and why nothing better can be had. */
  readonly source: string
}

/** Throws `invalid_request` naming the known ones. */
export function knownBoard(name: string): Board {
  const board = boardNamed(name)
  if (board) return board
  throw new AppError(
    'invalid_request',
    `There is no board ${JSON.stringify(name)}; known are ${BOARDS.map((known) => known.name).join(', ')}`,
  )
}

export async function factsOf(host: Pick<Host, 'service'>, board: Board, signal: AbortSignal): Promise<Facts> {
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
      source: `from the data sheet; it could not be read live: ${error instanceof AppError ? errorText(error) : 'the probe failed'}`,
    }
  }
}

export const memoryLines = ({ memory, board }: Facts): string[] =>
  memory.length === 0
    ? [`${board.name} has no memory that is known`]
    : memory.map(({ name, start, length }) => `${name}: ${hex(start)} - ${hex(start + length - 1)} (${Math.round(length / 1024)} KiB)`)

const hex = (address: number): string => `0x${address.toString(16).toUpperCase().padStart(8, '0')}`

/** The boards whose chip can be read live, and the data that identifies these chips. */
import { BOARDS, type Board, boardNamed } from '@sluice/hardware'
import { AppError } from '@sluice/sdk'

export interface LiveChip {
  /** The low twelve bits of the identity code. */
  readonly deviceId: number
  /** The product lines that share this identity code. */
  readonly name: string
  readonly ramBytes: number
  /** The arguments of OpenOCD for the board with its built-in debug probe. */
  readonly openocd: readonly string[]
}

const KIB = 1024
const NUCLEO = ['-f', 'board/st_nucleo_f4.cfg']

/** The chips by their name for a debug probe, `Board.probeChip`. */
const CHIPS: Readonly<Record<string, LiveChip>> = {
  STM32F401RETx: { deviceId: 0x433, name: 'STM32F401xD/xE', ramBytes: 96 * KIB, openocd: NUCLEO },
  STM32F411RETx: { deviceId: 0x431, name: 'STM32F411xC/xE', ramBytes: 128 * KIB, openocd: NUCLEO },
}

export const liveChipOf = ({ probeChip }: Board): LiveChip | undefined => (probeChip === undefined ? undefined : CHIPS[probeChip])

export const liveBoards: readonly Board[] = BOARDS.filter((board) => liveChipOf(board) !== undefined)

/** The names for a message: `one of board_c1, board_c2`. */
export const LIVE_NAMES = `one of ${liveBoards.map(({ name }) => name).join(', ')}`

export const isLiveBoard = (name: string): boolean => liveBoards.some((board) => board.name === name)

export const chipByDeviceId = (deviceId: number): LiveChip | undefined => Object.values(CHIPS).find((chip) => chip.deviceId === deviceId)

/**
 * Finds a board by its name, by the name of its chip or by the chip's name for a debug probe. Throws `invalid_request` when there is no
 * such board or its chip cannot be read live.
 */
export function liveBoardNamed(text: string): Board {
  const wanted = text.trim().toLowerCase()
  const names = ({ name, chip, probeChip = '' }: Board) => [name, chip, probeChip].map((each) => each.toLowerCase())
  const board = BOARDS.find((each) => names(each).includes(wanted))
  if (board && liveChipOf(board)) return board
  const problem = board
    ? `The chip of ${board.name} (${board.chip}) cannot be read live`
    : `Unknown board or chip ${JSON.stringify(text.slice(0, 64))}`
  throw new AppError('invalid_request', `${problem}; live readings need ${LIVE_NAMES}`)
}

/** Returns the first configured board whose chip can be read live. Throws `invalid_request` without such a board. */
export function defaultBoard(boards: readonly string[]): Board {
  const board = boards.map(boardNamed).find((each) => each && liveChipOf(each))
  if (!board) throw new AppError('invalid_request', `No configured board can be read live; name ${LIVE_NAMES}`)
  return board
}

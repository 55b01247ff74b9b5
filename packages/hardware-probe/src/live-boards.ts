/** The boards whose chip can be read live, and what tells these chips apart. */
import { BOARDS, type Board } from '@sluice/hardware'
import { AppError } from '@sluice/sdk'

export interface LiveChip {
  /** Of the low twelve bits of its identity code. */
  readonly deviceId: number
  /** What one code stands for. */
  readonly name: string
  readonly ramBytes: number
  /** Arguments of OpenOCD for the board as it is sold, with its own debug probe. */
  readonly openocd: readonly string[]
}

const KIB = 1024
const NUCLEO = ['-f', 'board/st_nucleo_f4.cfg']

/** By the name of the live target in the table of boards. */
const CHIPS: Readonly<Record<string, LiveChip>> = {
  STM32F401RETx: { deviceId: 0x433, name: 'STM32F401xD/xE', ramBytes: 96 * KIB, openocd: NUCLEO },
  STM32F411RETx: { deviceId: 0x431, name: 'STM32F411xC/xE', ramBytes: 128 * KIB, openocd: NUCLEO },
}

export const liveChipOf = ({ probeChip }: Board): LiveChip | undefined => (probeChip === undefined ? undefined : CHIPS[probeChip])

export const liveBoards: readonly Board[] = BOARDS.filter((board) => liveChipOf(board) !== undefined)

export const LIVE_NAMES = `one of ${liveBoards.map(({ name }) => name).join(', ')}`

export const chipByDeviceId = (deviceId: number): LiveChip | undefined => Object.values(CHIPS).find((chip) => chip.deviceId === deviceId)

/** By the name of the board, of its chip or of its live target. Throws `invalid_request` for one that cannot be read live. */
export function liveBoardNamed(text: string): Board {
  const wanted = text.trim().toLowerCase()
  const names = ({ name, chip, probeChip = '' }: Board) => [name, chip, probeChip].map((each) => each.toLowerCase())
  const board = BOARDS.find((each) => names(each).includes(wanted))
  if (board && liveChipOf(board)) return board
  const what = board
    ? `The chip of ${board.name} (${board.chip}) cannot be read live`
    : `There is no board or chip ${JSON.stringify(text.slice(0, 64))}`
  throw new AppError('invalid_request', `${what}; live readings need ${LIVE_NAMES}`)
}

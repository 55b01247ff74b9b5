/** What a chip says of itself: its core, its identity, the size of its flash. */
import type { Board } from '@sluice/hardware'
import type { ChipInfo } from '@sluice/sdk'
import type { Block, Reading } from './chip-reader.ts'
import { chipByDeviceId, liveChipOf } from './live-boards.ts'

/** CPUID of the core, DBGMCU_IDCODE and the flash size register of the STM32F4 (reference manuals RM0368 and RM0383). */
export const IDENTITY: readonly Block[] = [
  { address: 0xe000ed00, length: 4, width: 4 },
  { address: 0xe0042000, length: 4, width: 4 },
  { address: 0x1fff7a22, length: 2, width: 2 },
]

const FLASH_START = 0x08000000
const RAM_START = 0x20000000
const ARM = 0x41
const CORES: Readonly<Record<number, string>> = {
  3104: 'Cortex-M0',
  3168: 'Cortex-M0+',
  3105: 'Cortex-M1',
  3107: 'Cortex-M3',
  3108: 'Cortex-M4',
  3111: 'Cortex-M7',
  3360: 'Cortex-M23',
  3361: 'Cortex-M33',
}

export interface ChipIdentity {
  /** `Arm Cortex-M4 r0p1`; undefined: no core of Arm's answers. */
  readonly core?: string
  /** DBGMCU_IDCODE; undefined: it cannot be read. */
  readonly idCode?: number
  readonly flashBytes?: number
}

/** From the readings of `IDENTITY`. */
export function identityFrom([cpuid, idCode, flash]: readonly Reading[]): ChipIdentity {
  const core = coreOf(wordIn(cpuid))
  const id = wordIn(idCode)
  const kib = flash && Buffer.from(flash).readUInt16LE()
  return {
    ...(core !== undefined && { core }),
    // what is not there reads as all zeros or all ones
    ...(id !== undefined && id !== 0 && id !== 0xffffffff && { idCode: id }),
    ...(kib !== undefined && kib !== 0 && kib !== 0xffff && { flashBytes: kib * 1024 }),
  }
}

const wordIn = (reading: Reading): number | undefined => reading && Buffer.from(reading).readUInt32LE()

function coreOf(cpuid: number | undefined): string | undefined {
  if (cpuid === undefined || cpuid >>> 24 !== ARM) return undefined
  const part = (cpuid >>> 4) & 0xfff
  return `Arm ${CORES[part] ?? `core 0x${part.toString(16)}`} r${(cpuid >>> 20) & 0xf}p${cpuid & 0xf}`
}

/** What does not fit the board it was taken for, as a sentence. */
export function mismatch({ idCode }: ChipIdentity, board: Board): string | undefined {
  if (idCode === undefined) return `The chip's identity code cannot be read: whether it is the ${board.chip} of ${board.name} is not known.`
  return isOf(board, idCode) ? undefined : `The chip is ${chipName(idCode)}, not the ${board.chip} of ${board.name}.`
}

/** Of what does not say it (the size of RAM), what all chips of that identity have. */
export function chipInfo({ core = 'unknown', idCode, flashBytes }: ChipIdentity, board: Board): ChipInfo {
  const ramBytes = idCode === undefined ? undefined : chipByDeviceId(deviceIdIn(idCode))?.ramBytes
  const isOther = idCode !== undefined && !isOf(board, idCode)
  const name = idCode === undefined ? 'unknown (its identity code cannot be read)' : chipName(idCode)
  return {
    chip: isOther ? `${name}, not the ${board.chip} of ${board.name}` : name,
    architecture: core,
    memory: [
      ...(flashBytes === undefined ? [] : [{ name: 'Flash', start: FLASH_START, length: flashBytes }]),
      ...(ramBytes === undefined ? [] : [{ name: 'RAM', start: RAM_START, length: ramBytes }]),
    ],
  }
}

const deviceIdIn = (idCode: number): number => idCode & 0xfff

const isOf = (board: Board, idCode: number): boolean => deviceIdIn(idCode) === liveChipOf(board)?.deviceId

const chipName = (idCode: number): string =>
  `${chipByDeviceId(deviceIdIn(idCode))?.name ?? 'another chip'} (identity code 0x${idCode.toString(16).padStart(8, '0')})`

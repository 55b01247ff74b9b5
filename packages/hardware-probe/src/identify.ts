/** Identifies a chip by its own registers: the core, the identity code and the size of the flash. */
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
/** The implementer code of Arm in CPUID. */
const ARM = 0x41
/** The part numbers in CPUID. */
const CORES: ReadonlyMap<number, string> = new Map([
  [0xc20, 'Cortex-M0'],
  [0xc60, 'Cortex-M0+'],
  [0xc21, 'Cortex-M1'],
  [0xc23, 'Cortex-M3'],
  [0xc24, 'Cortex-M4'],
  [0xc27, 'Cortex-M7'],
  [0xd20, 'Cortex-M23'],
  [0xd21, 'Cortex-M33'],
])

export interface ChipIdentity {
  /** The core, such as `Arm Cortex-M4 r0p1`; undefined when no Arm core answers. */
  readonly core?: string
  /** DBGMCU_IDCODE; undefined when it cannot be read. */
  readonly idCode?: number
  readonly flashBytes?: number
}

/** Decodes the readings of `IDENTITY`. */
export function identityFrom([cpuid, idCode, flash]: readonly Reading[]): ChipIdentity {
  const core = coreOf(wordIn(cpuid))
  const id = wordIn(idCode)
  const kib = flash && Buffer.from(flash).readUInt16LE()
  return {
    ...(core !== undefined && { core }),
    // A missing register reads as all zeros or all ones.
    ...(id !== undefined && id !== 0 && id !== 0xffffffff && { idCode: id }),
    ...(kib !== undefined && kib !== 0 && kib !== 0xffff && { flashBytes: kib * 1024 }),
  }
}

const wordIn = (reading: Reading): number | undefined => reading && Buffer.from(reading).readUInt32LE()

function coreOf(cpuid: number | undefined): string | undefined {
  if (cpuid === undefined || cpuid >>> 24 !== ARM) return undefined
  const part = (cpuid >>> 4) & 0xfff
  return `Arm ${CORES.get(part) ?? `core 0x${part.toString(16)}`} r${(cpuid >>> 20) & 0xf}p${cpuid & 0xf}`
}

/** Returns a sentence when the chip is not, or may not be, the one of the board. */
export function mismatch({ idCode }: ChipIdentity, board: Board): string | undefined {
  if (idCode === undefined) return `The chip's identity code cannot be read, so it may not be the ${board.chip} of ${board.name}.`
  return isChipOf(board, idCode) ? undefined : `The chip is ${chipName(idCode)}, not the ${board.chip} of ${board.name}.`
}

/** Describes the chip. A chip does not report the size of its RAM, so that comes from the data of its identity code. */
export function chipInfo({ core = 'unknown', idCode, flashBytes }: ChipIdentity, board: Board): ChipInfo {
  const ramBytes = idCode === undefined ? undefined : chipByDeviceId(deviceIdIn(idCode))?.ramBytes
  const isOther = idCode !== undefined && !isChipOf(board, idCode)
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

const isChipOf = (board: Board, idCode: number): boolean => deviceIdIn(idCode) === liveChipOf(board)?.deviceId

const chipName = (idCode: number): string =>
  `${chipByDeviceId(deviceIdIn(idCode))?.name ?? 'another chip'} (identity code 0x${idCode.toString(16).padStart(8, '0')})`

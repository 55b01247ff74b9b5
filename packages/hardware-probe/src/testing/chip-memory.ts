/** The memory of simulated chips, for tests without a chip. */
import type { Block } from '../chip-reader.ts'

/** Blocks of memory as hexadecimal text, by their address. */
export type ChipMemory = Readonly<Record<number, string>>

const RAM = Buffer.from(Array.from({ length: 512 }, (_, index) => index & 0xff)).toString('hex')

const CPUID = 0xe000ed00
const IDCODE = 0xe0042000
const FLASH_SIZE = 0x1fff7a22

/** An STM32F401RE with a counting pattern in its RAM. */
export const F401_MEMORY: ChipMemory = Object.fromEntries([
  [CPUID, '41c20f41'],
  [IDCODE, '33640110'],
  [FLASH_SIZE, '0002'],
  [0x08000000, 'ff'.repeat(256)],
  [0x20000000, RAM],
  [0x20017f00, '5a'.repeat(256)],
])
export const F411_MEMORY: ChipMemory = { ...F401_MEMORY, [IDCODE]: '31640010' }

/** Returns the result of OpenOCD's `read_memory` for a block; undefined outside the memory. */
export function tclWords(memory: ChipMemory, { address, length, width }: Block): string | undefined {
  const found = Object.entries(memory).find(
    ([first, hex]) => address >= Number(first) && address + length <= Number(first) + hex.length / 2,
  )
  if (!found) return undefined
  const bytes = Buffer.from(found[1], 'hex').subarray(address - Number(found[0]))
  return Array.from({ length: length / width }, (_, index) => `0x${bytes.readUIntLE(index * width, width).toString(16)}`).join(' ')
}

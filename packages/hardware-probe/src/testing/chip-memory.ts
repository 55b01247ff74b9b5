/** The memory of a chip that is said to be there, for tests without one. */
import type { Block } from '../chip-reader.ts'

export type ChipMemory = Readonly<Record<number, string>>

const RAM = Buffer.from(Array.from({ length: 512 }, (_, index) => index & 0xff)).toString('hex')

/** By address, as hexadecimal text: an STM32F401RE with a counting pattern in its RAM. */
export const F401_MEMORY: ChipMemory = {
  3758157056: '41c20f41',
  3758366720: '33640110',
  536836642: '0002',
  134217728: 'ff'.repeat(256),
  536870912: RAM,
  536968960: '5a'.repeat(256),
}
export const F411_MEMORY: ChipMemory = { ...F401_MEMORY, 3758366720: '31640010' }

/** What OpenOCD's `read_memory` says of a block. */
export function tclWords(memory: ChipMemory, { address, length, width }: Block): string | undefined {
  const found = Object.entries(memory).find(
    ([first, hex]) => address >= Number(first) && address + length <= Number(first) + hex.length / 2,
  )
  if (!found) return undefined
  const bytes = Buffer.from(found[1], 'hex').subarray(address - Number(found[0]))
  return Array.from({ length: length / width }, (_, index) => `0x${bytes.readUIntLE(index * width, width).toString(16)}`).join(' ')
}

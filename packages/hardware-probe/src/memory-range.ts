/** Memory addresses: parsing, formatting, and the check that a range lies within the memory of a board. */
import type { Board } from '@sluice/hardware'
import { AppError } from '@sluice/sdk'
import type { Block } from './chip-reader.ts'

const WORD = 4
const ADDRESS_SPACE = 2 ** 32

/** Formats an address as `0x20000000`. */
export const hexAddress = (address: number): string => `0x${address.toString(16).toUpperCase().padStart(8, '0')}`

/** Parses an address from 0 to 0xFFFFFFFF, hexadecimal with `0x` or decimal. Throws `invalid_request` for any other text. */
export function parseAddress(text: string): number {
  const trimmed = text.trim()
  const address = /^(?:0[xX][0-9a-fA-F]{1,8}|\d{1,10})$/.test(trimmed) ? Number(trimmed) : Number.NaN
  if (!(address < ADDRESS_SPACE))
    throw new AppError('invalid_request', `${JSON.stringify(text)} is not an address; write it as 0x20000000 or 536870912`)
  return address
}

/** Returns the whole words that contain a range. Throws `invalid_request` when they exceed a memory of the board. */
export function wordsWithin(board: Board, address: number, length: number): Block {
  const start = address - (address % WORD)
  const end = Math.ceil((address + length) / WORD) * WORD
  const isInside = board.memory.some((range) => start >= range.start && end <= range.start + range.length)
  if (isInside) return { address: start, length: end - start, width: WORD }
  const ranges = board.memory.map(
    ({ name, start: first, length: size }) => `${name} ${hexAddress(first)} to ${hexAddress(first + size - 1)}`,
  )
  const wanted = `${hexAddress(address)} to ${hexAddress(address + length - 1)}`
  throw new AppError('invalid_request', `${wanted} is not within one memory of ${board.name}; it has ${ranges.join(', ')}`)
}

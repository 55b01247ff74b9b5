/** Addresses as a model writes them, held to the memory a board has. */
import type { Board } from '@sluice/hardware'
import { AppError } from '@sluice/sdk'
import type { Block } from './chip-reader.ts'
import { hexAddress } from './probe.ts'

const WORD = 4
const ADDRESSES = 2 ** 32

/** Throws `invalid_request` for what is no number from 0 to 0xFFFFFFFF, in hexadecimal with `0x` or in decimal digits. */
export function parseAddress(text: string): number {
  const trimmed = text.trim()
  const address = /^(?:0[xX][0-9a-fA-F]{1,8}|\d{1,10})$/.test(trimmed) ? Number(trimmed) : Number.NaN
  if (!(address < ADDRESSES)) throw new AppError('invalid_request', `${JSON.stringify(text)} is no address; write 0x20000000 or 536870912`)
  return address
}

/** The whole words around `length` bytes. Throws `invalid_request` where they leave the board's memory. */
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
